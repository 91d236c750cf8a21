"""A request between its server and its course: when it needs a task, and how it ends by being cancelled."""

import asyncio
import logging
from collections.abc import Generator

import pytest

from kinference.wire.exchange import Course, Exchange, Work
from kinference.wire.site import Site
from kinference.wire.work import OwnWork
from tests.unit.wire.test_site import NotedExchange, site_for


class Stepwise(Course):
    """Is told by a test how far it goes."""

    def __init__(self, exchange: Exchange, *, goes: bool = True) -> None:
        self.exchange, self._goes = exchange, goes
        self.work: Work | None = None
        self.is_stopped = False
        self.awaited: list[str] = []
        self.may_end = asyncio.Event()

    def begin(self, work: Work) -> bool:
        self.work = work
        return self._goes

    def stop(self) -> None:
        assert self.work is not None
        self.is_stopped = True
        self.work.wait()

    def __await__(self) -> Generator[None, None, None]:
        return self._rest().__await__()

    async def _rest(self) -> None:
        try:
            if self.is_stopped:
                raise asyncio.CancelledError
            await self.may_end.wait()
            await self.exchange.finish()
            self.awaited.append("finished")
        finally:
            self.awaited.append("closed")


def begun(*, goes: bool = True) -> tuple[Stepwise, NotedExchange, Site]:
    exchange = NotedExchange()
    course = Stepwise(exchange, goes=goes)
    site = site_for(lambda _: course)
    site.set_out(exchange)
    assert len(site.handlers) == 1
    return course, exchange, site


async def settle(site: Site) -> None:
    await asyncio.wait_for(site.wait_idle(10), 10)
    assert not site.handlers


async def test_what_is_answered_on_its_way_needs_no_task() -> None:
    course, exchange, site = begun()
    assert course.work is not None
    await exchange.finish()
    course.work.over()
    assert (site.handlers, course.awaited, exchange.ends) == (set(), [], [])


async def test_what_is_over_and_was_not_answered_fails(caplog: pytest.LogCaptureFixture) -> None:
    course, exchange, _ = begun()
    assert course.work is not None
    with caplog.at_level(logging.ERROR):
        course.work.over()
    assert exchange.ends == ["500"]
    assert [record.message for record in caplog.records] == ["handler left its answer unfinished: GET /p"]


@pytest.mark.parametrize("goes", [False, True])
async def test_what_is_to_be_awaited_is_in_a_task(goes: bool) -> None:
    course, exchange, site = begun(goes=goes)
    if goes:
        assert course.work is not None
        course.work.wait()
    assert len(site.handlers) == 1
    course.may_end.set()
    await settle(site)
    assert (course.awaited, exchange.ends) == (["finished", "closed"], [])


async def test_what_is_cancelled_on_its_way_closes_what_it_has_open_in_a_task() -> None:
    course, exchange, site = begun()
    for handling in tuple(site.handlers):
        handling.cancel()
    await settle(site)
    assert (course.awaited, exchange.ends) == (["closed"], ["broken off"])


@pytest.mark.parametrize("has_begun", [False, True])
async def test_what_is_cancelled_in_its_task_closes_what_it_has_open_also_where_that_has_yet_to_begin(
    has_begun: bool,
) -> None:
    course, exchange, site = begun(goes=False)
    if has_begun:
        await asyncio.sleep(0)
    for handling in tuple(site.handlers):
        handling.cancel()
    await settle(site)
    assert (course.awaited, exchange.ends) == (["closed"], ["broken off"])


@pytest.mark.parametrize("goes", [False, True])
async def test_what_is_over_is_not_held_by_who_may_still_cancel_it(goes: bool) -> None:
    course, exchange, site = begun(goes=goes)
    (handling,) = site.handlers
    assert isinstance(handling, OwnWork)
    if goes:
        assert course.work is not None
        await exchange.finish()
        course.work.over()
    else:
        course.may_end.set()
    await settle(site)
    assert handling.course is None
    handling.cancel()
    assert (course.is_stopped, exchange.ends) == (False, [])


async def test_two_may_wait_until_no_request_is_under_way() -> None:
    course, _, site = begun(goes=False)
    waiting = [asyncio.ensure_future(site.wait_idle(60)) for _ in range(2)]
    await asyncio.sleep(0)
    course.may_end.set()
    await asyncio.wait_for(asyncio.gather(*waiting), 10)


async def test_what_comes_to_its_end_by_finding_its_client_gone_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    course, exchange, site = begun()
    assert course.work is not None
    exchange.is_gone = True
    with caplog.at_level(logging.ERROR):
        course.work.over()
    assert (exchange.ends, site.handlers, caplog.records) == ([], set(), [])

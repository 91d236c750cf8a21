"""What becomes of a request when its handler ends, however it ends."""

import asyncio
import logging

import pytest

from kinference.errors import ClientGone
from kinference.wire.exchange import Exchange, Handler
from kinference.wire.handling import handled
from tests.unit.wire.test_site import NotedExchange, answering


async def leaving(_exchange: Exchange) -> None:
    return


async def losing(_exchange: Exchange) -> None:
    raise ClientGone("the request's body broke off")


async def failing(_exchange: Exchange) -> None:
    raise KeyError("detail")


@pytest.mark.parametrize(
    ("handler", "ends", "logged"),
    [
        (answering, [], []),
        (leaving, ["500"], ["handler left its answer unfinished: GET /p"]),
        (losing, ["400"], []),
        (failing, ["500"], ["handler failed: GET /p"]),
    ],
)
async def test_every_end_of_a_handler_is_an_end_of_its_answer(
    handler: Handler, ends: list[str], logged: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    exchange = NotedExchange()
    with caplog.at_level(logging.ERROR):
        await handled(exchange, handler)
    assert exchange.ends == ends
    assert [record.message for record in caplog.records] == logged


async def test_an_answer_whose_handler_was_cancelled_is_broken_off() -> None:
    async def waiting(_exchange: Exchange) -> None:
        await asyncio.Event().wait()

    exchange = NotedExchange()
    task = asyncio.create_task(handled(exchange, waiting))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert exchange.ends == ["broken off"]


async def test_what_its_handler_has_returned_already_is_awaited_in_its_place() -> None:
    exchange = NotedExchange()
    await handled(exchange, losing, answering(exchange))
    assert exchange.is_over
    assert exchange.ends == []

"""Lookups of names, against a system that is slow."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence

import pytest

from kinference.wire.names import Names


class Resolver:
    """The system's, which answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: asyncio.Queue[list[str]] = asyncio.Queue()

    async def getaddrinfo(self, name: str, _port: None, *, type: int) -> list[tuple[object, ...]]:  # noqa: A002 - its name
        assert type is socket.SOCK_STREAM
        self.asked.append(name)
        answer = await self.answers.get()
        if not answer:
            raise socket.gaierror
        return [(0, 0, 0, "", (address, 0)) for address in answer]


@pytest.fixture
async def resolver(monkeypatch: pytest.MonkeyPatch) -> Resolver:
    resolver = Resolver()
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolver.getaddrinfo)
    return resolver


@pytest.fixture
async def names() -> AsyncIterator[Names]:
    names = Names(asyncio.get_running_loop())
    yield names
    names.close()


async def asking(names: Names, name: str = "h.example") -> "asyncio.Task[Sequence[str]]":
    task = asyncio.ensure_future(names.addresses(name))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return task


async def test_an_address_is_its_own_answer(names: Names, resolver: Resolver) -> None:
    assert await names.addresses("10.0.0.1") == ("10.0.0.1",)
    assert await names.addresses("fd00::1") == ("fd00::1",)
    assert resolver.asked == []


async def test_who_asks_at_one_time_shares_a_lookup(names: Names, resolver: Resolver) -> None:
    tasks = [await asking(names) for _ in range(3)]
    tasks[0].cancel()
    assert resolver.asked == ["h.example"]
    resolver.answers.put_nowait(["10.0.0.1", "10.0.0.1", "fd00::1"])
    assert [list(await task) for task in tasks[1:]] == [["10.0.0.1", "fd00::1"]] * 2


async def test_a_name_is_looked_up_anew_each_time(names: Names, resolver: Resolver) -> None:
    for address in ("10.0.0.1", "10.0.0.2"):
        resolver.answers.put_nowait([address])
        assert list(await names.addresses("h.example")) == [address]


async def test_the_address_that_was_reached_comes_first(names: Names, resolver: Resolver) -> None:
    names.reached("h.example", "10.0.0.2")
    resolver.answers.put_nowait(["10.0.0.1", "10.0.0.2", "10.0.0.3"])
    assert list(await names.addresses("h.example")) == ["10.0.0.2", "10.0.0.1", "10.0.0.3"]


async def test_a_failure_is_told_to_whoever_waits_and_then_forgotten(names: Names, resolver: Resolver) -> None:
    task, gone = await asking(names), await asking(names)
    gone.cancel()
    resolver.answers.put_nowait([])
    with pytest.raises(socket.gaierror):
        await task
    resolver.answers.put_nowait(["10.0.0.1"])
    assert list(await names.addresses("h.example")) == ["10.0.0.1"]


async def test_closing_ends_what_is_asked(resolver: Resolver) -> None:
    names = Names(asyncio.get_running_loop())
    task = await asking(names)
    names.close()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert resolver.asked == ["h.example"]

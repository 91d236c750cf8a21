"""What one turn of the event loop writes, over transports that note it."""

import asyncio

import pytest

from kinference.wire.turn import HELD_MAX, SMALL, Turn


class Noting:
    """A transport of several that write into one list."""

    def __init__(self, name: str, written: list[tuple[str, bytes]]) -> None:
        self._name, self._written = name, written
        self.is_closed = False

    def is_closing(self) -> bool:
        return self.is_closed

    def write(self, data: bytes) -> None:
        self._written.append((self._name, data))


@pytest.fixture
def written() -> list[tuple[str, bytes]]:
    return []


async def turns(count: int = 2) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_the_first_piece_of_a_turn_goes_at_once_and_the_others_at_its_end(
    written: list[tuple[str, bytes]],
) -> None:
    turn, a, b = Turn(), Noting("a", written), Noting("b", written)
    turn.write(a, b"1")
    turn.write(b, b"2")
    turn.write(a, b"3")
    assert written == [("a", b"1")]
    await turns()
    assert written == [("a", b"1"), ("b", b"2"), ("a", b"3")]


async def test_the_next_turn_begins_anew(written: list[tuple[str, bytes]]) -> None:
    turn, a = Turn(), Noting("a", written)
    turn.write(a, b"1")
    await turns()
    turn.write(a, b"2")
    assert written == [("a", b"1"), ("a", b"2")]


async def test_who_writes_is_told_whether_it_is_held_and_for_how_long(written: list[tuple[str, bytes]]) -> None:
    turn, a = Turn(), Noting("a", written)
    assert not turn.write(a, b"1")
    assert turn.write(a, b"2")
    before = turn.flushes
    assert turn.write(a, b"3")
    assert turn.flushes == before
    assert not turn.write(a, b"4" * (SMALL + 1))
    assert turn.flushes > before
    assert turn.write(a, b"5")
    before = turn.flushes
    await turns()
    assert turn.flushes > before


async def test_a_crowd_is_written_before_all_of_it_has_come(written: list[tuple[str, bytes]]) -> None:
    turn, a = Turn(), Noting("a", written)
    for number in range(HELD_MAX + 1):
        turn.write(a, b"%d" % number)
    assert [piece for _, piece in written] == [b"%d" % number for number in range(HELD_MAX + 1)]


async def test_a_large_piece_waits_for_nothing_and_overtakes_nothing(written: list[tuple[str, bytes]]) -> None:
    turn, a = Turn(), Noting("a", written)
    pieces = [b"1", b"2", b"3" * (SMALL + 1)]
    for piece in pieces:
        turn.write(a, piece)
    assert [piece for _, piece in written] == pieces


async def test_a_flush_writes_what_is_held_and_once(written: list[tuple[str, bytes]]) -> None:
    turn, a = Turn(), Noting("a", written)
    turn.write(a, b"1")
    turn.write(a, b"2")
    turn.flush()
    assert written == [("a", b"1"), ("a", b"2")]
    await turns()
    assert len(written) == 2


async def test_a_transport_that_closes_meanwhile_gets_nothing_and_keeps_nobody_waiting(
    written: list[tuple[str, bytes]],
) -> None:
    turn, a, b = Turn(), Noting("a", written), Noting("b", written)
    turn.write(a, b"1")
    turn.write(a, b"2")
    turn.write(b, b"3")
    a.is_closed = True
    await turns()
    assert written == [("a", b"1"), ("b", b"3")]
    turn.write(a, b"4")
    assert len(written) == 2


async def test_what_is_called_at_the_end_may_still_write(written: list[tuple[str, bytes]]) -> None:
    turn, a = Turn(), Noting("a", written)
    turn.at_end(lambda: turn.write(a, b"last"))
    turn.write(a, b"first")
    turn.write(a, b"second")
    await turns()
    assert [piece for _, piece in written] == [b"first", b"second", b"last"]
    await turns()
    assert len(written) == 3


async def test_a_piece_that_cannot_be_written_keeps_no_other_from_being_written(
    written: list[tuple[str, bytes]],
) -> None:
    class Broken(Noting):
        def write(self, data: bytes) -> None:
            raise RuntimeError("no more")

    told: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    turn, a, broken = Turn(), Noting("a", written), Broken("broken", written)
    for outlet, piece in ((a, b"1"), (broken, b"2"), (a, b"3")):
        turn.write(outlet, piece)
    await turns()
    assert len(told) == 1
    turn.write(a, b"4")
    assert written == [("a", b"1"), ("a", b"3"), ("a", b"4")]

import pytest

from kinference.errors import BudgetExceeded, RetryLater
from kinference.gateway.held_body import BodyLimits, HeldBody
from tests.unit.gateway.fakes import FakeExchange, FakePicker


class Arrived(FakeExchange):
    def arrived(self) -> bytes:
        return b"".join(self._body)


def body(picker: FakePicker) -> HeldBody:
    return HeldBody(BodyLimits(bytes_max=10, idle=30.0), picker)


def test_what_is_all_here_is_taken_in_at_once_and_counted() -> None:
    picker = FakePicker()
    held = body(picker)
    assert held.take_arrived(Arrived("/v1/x", (b"abc",)))
    assert (held.whole, picker.held) == (b"abc", 3)


def test_what_is_yet_to_come_is_not() -> None:
    picker = FakePicker()
    held = body(picker)
    assert not held.take_arrived(FakeExchange("/v1/x", (b"abc",)))
    assert (held.whole, picker.held) == (b"", 0)


@pytest.mark.parametrize(("parts", "whole"), [((), b""), ((b"ab",), b"ab"), ((b"ab", b"", b"c"), b"abc")])
def test_pieces_are_counted_as_they_come_and_are_one_in_the_end(parts: tuple[bytes, ...], whole: bytes) -> None:
    picker = FakePicker()
    held = body(picker)
    for part in parts:
        held.add(part)
    assert picker.held == len(whole)
    held.end()
    assert held.whole == whole


def test_one_byte_over_the_limit_is_refused_and_not_counted() -> None:
    picker = FakePicker()
    held = body(picker)
    held.add(b"0123456789")
    with pytest.raises(BudgetExceeded, match="10 bytes"):
        held.add(b"!")
    assert picker.held == 10
    with pytest.raises(BudgetExceeded):
        held.expect(11)


def test_a_picker_without_room_puts_the_body_off() -> None:
    picker = FakePicker()
    picker.room = 4
    held = body(picker)
    with pytest.raises(RetryLater):
        held.expect(5)
    held.expect(4)
    with pytest.raises(RetryLater):
        held.add(b"01234")
    assert picker.held == 0


def test_a_placed_body_is_counted_no_longer_however_often_that_is_told() -> None:
    picker = FakePicker()
    held = body(picker)
    held.add(b"abc")
    for _ in range(2):
        held.placed()
        assert picker.held == 0
    held.end()
    assert held.whole == b"abc"
    held.release()
    assert held.whole == b""

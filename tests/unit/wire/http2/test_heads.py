"""What header blocks mean, and for how long that is remembered."""

import pytest
from hpack import Encoder

from kinference.wire.http2.frames import ConnectionFault, ErrorCode, StreamFault
from kinference.wire.http2.headers import literal
from kinference.wire.http2.heads import REMEMBERED_MAX, Heads
from kinference.wire.http2.requests import Request
from tests.unit.wire.http2.peer import REQUEST


class Counting:
    """Reads heads, and counts them."""

    def __init__(self) -> None:
        self.encoder, self.read = Encoder(), 0
        self.heads: Heads[bytes] = Heads(self.head, 1000)

    def head(self, request: Request) -> bytes:
        self.read += 1
        return b" ".join((request.path, *(value for _, value, _, _ in request.fields)))

    def block(self, *more: tuple[str, str]) -> bytes:
        encoded: bytes = self.encoder.encode([*REQUEST, *more], huffman=False)
        return encoded


def test_a_block_that_changes_nothing_is_read_once() -> None:
    peer = Counting()
    peer.heads.request(peer.block(("x-a", "1")))
    block = peer.block(("x-a", "1"))
    assert [peer.heads.request(block) for _ in range(3)] == [(b"/s/m 1", None)] * 3
    assert peer.read == 2


def test_a_change_of_the_table_makes_it_forget() -> None:
    peer = Counting()
    peer.heads.request(peer.block(("x-a", "1")))
    block = peer.block(("x-a", "1"))
    assert peer.heads.request(block) == (b"/s/m 1", None)
    peer.heads.skip(Encoder().encode([(":path", "/other")]))
    with pytest.raises(StreamFault):
        peer.heads.request(block)


def test_a_declared_length_is_told_each_time() -> None:
    peer = Counting()
    block = b"\x83\x86\x84\x0f\x0d\x0217"
    assert [peer.heads.request(block) for _ in range(2)] == [(b"/ 17", 17)] * 2


def test_what_is_remembered_is_bounded() -> None:
    peer = Counting()
    for number in range(3 * REMEMBERED_MAX):
        digits = str(number).encode()
        peer.heads.request(b"\x83\x86\x04" + bytes((len(digits) + 1,)) + b"/" + digits)
    assert len(peer.heads._known) <= REMEMBERED_MAX


def test_a_list_too_large_is_a_fault_of_its_stream_and_keeps_the_table() -> None:
    peer = Counting()
    peer.heads.request(peer.block())
    with pytest.raises(StreamFault) as caught:
        peer.heads.request(peer.block(("x-a", "1"), ("x-long", "v" * 1000)))
    assert caught.value.code is ErrorCode.ENHANCE_YOUR_CALM
    assert peer.heads.request(peer.block(("x-a", "1"))) == (b"/s/m 1", None)


def test_trailers_are_checked() -> None:
    peer = Counting()
    peer.heads.trailers(Encoder().encode([("x-sum", "1")]))
    with pytest.raises(StreamFault):
        peer.heads.trailers(b"\x84")
    with pytest.raises(ConnectionFault):
        peer.heads.trailers(b"\x80")


def test_a_long_block_is_read_each_time() -> None:
    peer = Counting()
    peer.heads = Heads(peer.head, 10_000)
    block = b"\x83\x86\x84" + literal(b"x-long", b"v" * 1100)
    for _ in range(2):
        peer.heads.request(block)
    assert peer.read == 2

"""What header blocks mean, and for how long that is remembered."""

from enum import Enum, auto

import msgspec
import pytest
from hpack import Encoder, HeaderTuple, NeverIndexedHeaderTuple
from hypothesis import given
from hypothesis import strategies as st

from kinference.wire.http2.fields import Fields
from kinference.wire.http2.frames import ConnectionFault, ErrorCode, StreamFault
from kinference.wire.http2.headers import HeaderDecoder, list_bytes, literal
from kinference.wire.http2.heads import REMEMBERED_MAX, START_BYTES_MAX, STARTS_MAX, Heads
from kinference.wire.http2.requests import Request, read_request
from tests.unit.wire.http2.peer import REQUEST, same


class Indexing(Enum):
    """How a field is written."""

    PLAIN = auto()
    ADDED = auto()
    NEVER = auto()


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
    assert len(peer.heads.known) <= REMEMBERED_MAX


def test_a_list_too_large_is_a_fault_of_its_stream_and_keeps_the_table() -> None:
    peer = Counting()
    peer.heads.request(peer.block())
    with pytest.raises(StreamFault) as caught:
        peer.heads.request(peer.block(("x-a", "1"), ("x-long", "v" * 1000)))
    assert caught.value.code is ErrorCode.ENHANCE_YOUR_CALM
    assert peer.heads.request(peer.block(("x-a", "1"))) == (b"/s/m 1", None)


def test_a_beginning_is_known_again_when_each_block_moves_the_table_on() -> None:
    """And a head goes on from there, where its reader can."""
    read: list[bytes] = []
    gone_on: list[bytes] = []

    def head(request: Request) -> Fields:
        read.append(request.path)
        return request.fields

    def go_on(known: Fields, more: Fields) -> Fields | None:
        gone_on.append(more[0][1])
        return None if more[0][1] == b"r-3" else known + more

    encoder, heads = Encoder(), Heads(head, 1000, go_on)
    for number in range(5):
        block = encoder.encode([*REQUEST, ("x-request", f"r-{number}")], huffman=True)
        assert heads.request(block)[0][-1][:2] == (b"x-request", f"r-{number}".encode())
    assert len(read) == 4, "the first, the first with a known beginning and that beginning alone, and the one refused"
    assert gone_on == [b"r-2", b"r-3", b"r-4"]


def test_beginnings_are_remembered_up_to_a_bound() -> None:
    peer = Counting()
    for number in range(3 * STARTS_MAX):
        peer.heads.skip(peer.encoder.encode([("x-start", str(number))], huffman=False))
        peer.heads.request(peer.block(("x-start", str(number))) + literal(b"x-id", b"1"))
    assert 0 < len(peer.heads._starts) <= STARTS_MAX


def test_a_long_beginning_is_read_each_time() -> None:
    peer = Counting()
    peer.heads = Heads(peer.head, 10_000)
    peer.heads.skip(literal(b"x-a", b"1").replace(b"\0", b"\x40", 1))
    run = b"\x83\x86\x84" + b"\xbe" * (START_BYTES_MAX // 36)
    for number in (b"1", b"2"):
        peer.heads.request(run + literal(b"x-b", number))
    assert not peer.heads._starts


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


def longer(known: Request, more: Fields) -> Request:
    return msgspec.structs.replace(known, fields=known.fields + more)


FIELDS = st.tuples(
    st.sampled_from(["x-a", "x-b", "te", "content-length", ":path", "connection"]),
    st.sampled_from(["1", "2", "trailers", "/s/n", "v" * 60]),
    st.sampled_from(list(Indexing)),
)


@given(st.lists(st.tuples(st.lists(FIELDS, max_size=4), st.booleans()), max_size=8))
def test_what_is_remembered_of_a_beginning_makes_no_difference(
    calls: list[tuple[list[tuple[str, str, Indexing]], bool]],
) -> None:
    """Against a reader that remembers nothing, over blocks that index, do not, and never do."""
    encoder, decoder = Encoder(), HeaderDecoder()
    heads: Heads[Request] = Heads(same, 400, longer)
    for fields, huffman in calls:
        block = encoder.encode(REQUEST, huffman=huffman)
        for name, value, indexing in fields:
            if indexing is Indexing.PLAIN:
                block += literal(name.encode(), value.encode())
            else:
                kind = HeaderTuple if indexing is Indexing.ADDED else NeverIndexedHeaderTuple
                block += encoder.encode([kind(name, value)], huffman=huffman)
        listed = decoder.decode(block)
        try:
            expected: Request | None = read_request(listed) if list_bytes(listed) <= 400 else None
        except StreamFault:
            expected = None
        try:
            found: Request | None = heads.request(block)[0]
        except StreamFault:
            found = None
        assert found == expected


def test_a_table_may_not_be_resized_behind_what_is_remembered() -> None:
    peer = Counting()
    peer.heads.request(b"\x83\x86\x84" + literal(b"x-a", b"1"))
    assert peer.heads.request(b"\x83\x86\x84" + literal(b"x-a", b"2")) == (b"/ 2", None)
    with pytest.raises(ConnectionFault):
        peer.heads.request(b"\x83\x86\x84\x20" + literal(b"x-a", b"3"))

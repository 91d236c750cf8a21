"""The header decoder, against the encoder of the hpack library and the examples of RFC 7541."""

import pytest
from hpack import Decoder, Encoder, HeaderTuple, NeverIndexedHeaderTuple
from hypothesis import given
from hypothesis import strategies as st

from kinference.wire.http2.fields import Role
from kinference.wire.http2.frames import ConnectionFault, ErrorCode
from kinference.wire.http2.headers import NAMES_MAX, HeaderDecoder, list_bytes, literal

Pairs = list[tuple[bytes, bytes]]
FIRST = "828684418cf1e3c2e5f23a6ba0ab90f4ff"
SECOND = "828684be5886a8eb10649cbf"
THIRD = "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf"


def pairs(decoder: HeaderDecoder, block: bytes) -> Pairs:
    return [(name, value) for name, value, _, _ in decoder.decode(block)]


def test_the_requests_of_the_rfc_with_huffman_code() -> None:
    decoder = HeaderDecoder()
    common = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"www.example.com")]
    assert pairs(decoder, bytes.fromhex(FIRST)) == common
    assert pairs(decoder, bytes.fromhex(SECOND)) == [*common, (b"cache-control", b"no-cache")]
    assert pairs(decoder, bytes.fromhex(THIRD)) == [
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":path", b"/index.html"),
        (b":authority", b"www.example.com"),
        (b"custom-key", b"custom-value"),
    ]


names = st.sampled_from([b":path", b"te", b"x-a", b"x-b", b"grpc-timeout", b"x-" + b"long" * 40])
texts = st.one_of(st.sampled_from([b"", b"/", b"1", b"v" * 200, b"w" * 3000]), st.binary(max_size=40))
kinds = st.sampled_from([HeaderTuple, NeverIndexedHeaderTuple])
lists = st.lists(st.tuples(kinds, names, texts), max_size=12)


@given(st.lists(st.tuples(lists, st.booleans(), st.sampled_from([None, 0, 100, 4096])), max_size=8))
def test_what_an_encoder_wrote_is_read(blocks: list[tuple[list[tuple[type, bytes, bytes]], bool, int | None]]) -> None:
    encoder, decoder = Encoder(), HeaderDecoder()
    for fields, huffman, size in blocks:
        if size is not None:
            encoder.header_table_size = size
        given = [kind(name, value) for kind, name, value in fields]
        assert pairs(decoder, encoder.encode(given, huffman=huffman)) == [(name, value) for _, name, value in fields]


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(block: bytes) -> None:
    code = ErrorCode.COMPRESSION_ERROR
    try:
        HeaderDecoder().decode(block)
    except ConnectionFault as fault:
        code = fault.code
    assert code is ErrorCode.COMPRESSION_ERROR


@pytest.mark.parametrize(
    "block",
    ["80", "be", "ff00", "ffffffffff7f", "3fe21f", "8220", "00", "0001", "000161", "00016105", "0082ffff", "41", "7f"],
)
def test_a_block_that_breaks_the_rules_is_a_fault(block: str) -> None:
    with pytest.raises(ConnectionFault, match="COMPRESSION_ERROR"):
        HeaderDecoder().decode(bytes.fromhex(block))


@given(st.lists(st.integers(0x81, 0xFE), max_size=12).map(bytes))
def test_a_run_of_indices_is_what_the_block_would_be(run: bytes) -> None:
    decoder = HeaderDecoder()
    decoder.decode(b"".join(b"\x40\x01" + bytes((number,)) + b"\x01v" for number in b"abcdef"))
    try:
        expected = decoder.decode(run)
    except ConnectionFault:
        with pytest.raises(ConnectionFault):
            decoder.indexed(run)
    else:
        assert decoder.indexed(run) == expected


def test_a_name_is_judged_once_and_its_value_each_time() -> None:
    decoder = HeaderDecoder()
    roles = [decoder.decode(b"\x10\x03x-a" + bytes((len(value),)) + value)[0][2] for value in (b"1", b"\n", b"2")]
    assert roles == [Role.REGULAR, Role.FLAWED, Role.REGULAR]
    for number in range(2 * NAMES_MAX):
        decoder.decode(literal(f"x-{number}".encode(), b"1"))
    assert len(decoder._names) <= NAMES_MAX


def test_changes_are_counted_where_the_table_changes_and_nowhere_else() -> None:
    decoder, encoder = HeaderDecoder(), Encoder()
    decoder.decode(encoder.encode([("x-a", "1")]))
    assert decoder.changes == 1
    decoder.decode(encoder.encode([("x-a", "1"), NeverIndexedHeaderTuple("x-b", "2")]))
    assert decoder.changes == 1
    decoder.decode(b"\x20")
    assert decoder.changes == 2


def test_an_entry_larger_than_the_table_empties_it() -> None:
    decoder, encoder = HeaderDecoder(), Encoder()
    decoder.decode(encoder.encode([("x-a", "1"), ("x-b", "v" * 5000)]))
    with pytest.raises(ConnectionFault):
        decoder.decode(b"\xbe")


def test_a_bomb_of_references_is_measured() -> None:
    decoder = HeaderDecoder()
    decoder.decode(literal(b"x", b"v" * 3900).replace(b"\x00", b"\x40", 1))
    assert list_bytes(decoder.decode(b"\xbe" * 1000)) > 3_900_000


@given(st.binary(max_size=40_000))
def test_a_literal_is_read_by_others(value: bytes) -> None:
    decoder = Decoder(max_header_list_size=2**20)
    assert decoder.decode(literal(b"x-name", value), raw=True) == [(b"x-name", value)]


def test_strings_are_remembered_up_to_a_bound() -> None:
    decoder, encoder = HeaderDecoder(), Encoder()
    for number in range(3000):
        decoder.decode(encoder.encode([(":path", f"/{number}/aaaaaaaaaa")], huffman=True))
    assert len(decoder._huffman) <= 1024


def test_a_long_string_is_not_remembered() -> None:
    decoder, encoder = HeaderDecoder(), Encoder()
    decoder.decode(encoder.encode([("x-long", "a" * 1000)], huffman=True))
    assert sum(map(len, decoder._huffman)) < 20

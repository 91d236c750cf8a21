"""RFC 7541: header blocks, broken ones and odd ones that are not broken."""

from tests.conformance.http2.case import OK, Case, broken, reset
from tests.conformance.http2.frames import (
    CALL,
    CONTINUATION,
    ECHO,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    call,
    frame,
    headers,
    literal,
    number,
    text,
)

BAD = broken("COMPRESSION_ERROR")
CALM = reset("ENHANCE_YOUR_CALM")
ENTERED = literal(b"x", b"1", 0x40)
"""Enters the table, where it has index 62 then."""
INDEX_62 = b"\xbe"


def ask(more: bytes, stream: int = 1) -> bytes:
    return headers(stream, call(ECHO, more), END_STREAM)


def huffman(coded: bytes) -> bytes:
    """A field whose value is coded so."""
    return b"\0\1x" + number(len(coded), 7, 0x80) + coded


def resized(size: int) -> bytes:
    return number(size, 5, 0x20)


def continued(block: bytes, size: int) -> bytes:
    """A block in frames of a size."""
    pieces = [block[at : at + size] for at in range(0, len(block), size)]
    last = len(pieces) - 1
    return frame(HEADERS, END_STREAM | (END_HEADERS if last == 0 else 0), 1, pieces[0]) + b"".join(
        frame(CONTINUATION, END_HEADERS if at == last else 0, 1, piece) for at, piece in enumerate(pieces[1:], 1)
    )


INDEXES = (
    Case("7541/6.1", "sends index 0", ask(b"\x80"), BAD),
    Case("7541/6.1", "sends an index of an empty table", ask(INDEX_62), BAD),
    Case("7541/2.3.3", "sends an index beyond all tables", ask(number(100_000, 7, 0x80)), BAD),
    Case("7541/6.2.1", "names a field by an index of an empty table", ask(number(62, 6, 0x40) + text(b"1")), BAD),
    Case("7541/6.2.2", "names an unindexed field by an index of an empty table", ask(number(62, 4) + text(b"1")), BAD),
    Case("7541/6.2.1", "enters a field and asks for it in the same block", ask(ENTERED + INDEX_62), OK),
    Case(
        "7541/6.2.1", "enters a field and asks for it in the next block", ask(ENTERED) + ask(INDEX_62, 3), OK, stream=3
    ),
    Case("7541/6.2.2", "does not enter a field, and asks for it", ask(literal(b"x", b"1") + INDEX_62), BAD),
    Case("7541/6.2.3", "forbids a field to be entered", ask(literal(b"x", b"1", 0x10)), OK),
    Case(
        "7541/4.4",
        "enters a field larger than the table, which empties it",
        ask(ENTERED + literal(b"x", b"v" * 4100, 0x40) + INDEX_62),
        BAD,
    ),
    Case("7541/4.4", "pushes a field out of the table", ask(ENTERED + literal(b"y", b"v" * 4040, 0x40) + b"\xbf"), BAD),
    Case(
        "9113/8.1.1",
        "enters a field in a malformed request and asks for it in the next",
        ask(ENTERED + literal(b"A", b"1")) + ask(INDEX_62, 3),
        OK,
        stream=3,
    ),
)
SIZES = (
    Case("7541/6.3", "resizes the table", headers(1, resized(100) + CALL, END_STREAM), OK),
    Case("7541/6.3", "resizes the table to the most", headers(1, resized(4096) + CALL, END_STREAM), OK),
    Case("7541/6.3", "resizes the table beyond the most", headers(1, resized(4097) + CALL, END_STREAM), BAD),
    Case(
        "7541/4.2",
        "resizes the table twice at the beginning",
        headers(1, resized(0) + resized(4096) + CALL, END_STREAM),
        OK,
    ),
    Case("7541/4.2", "resizes the table amid a block", headers(1, CALL[:2] + resized(0) + CALL[2:], END_STREAM), BAD),
    Case("7541/4.2", "resizes the table at the end of a block", ask(resized(0)), BAD),
    Case(
        "7541/4.3",
        "resizes the table to nothing and asks for what was in it",
        ask(ENTERED) + headers(3, resized(0) + CALL + INDEX_62, END_STREAM),
        BAD,
        stream=3,
    ),
)
NUMBERS = (
    Case("7541/5.1", "sends a number that overflows", ask(b"\xff" + b"\xff" * 9 + b"\x0f"), BAD),
    Case("7541/5.1", "sends a number without end", ask(b"\xff" + b"\x80" * 200 + b"\0"), BAD),
    Case("7541/5.1", "sends a number that breaks off", ask(b"\xff\x80"), BAD),
    Case("7541/5.1", "sends a number with needless zeros", ask(b"\0\1x\x7f\x81\x80\0" + b"v" * 128), OK),
    Case("7541/5.2", "sends a string that breaks off", ask(b"\0\1x\x0aabc"), BAD),
    Case("7541/5.2", "sends a name without a value", ask(b"\0\1x"), BAD),
    Case("7541/5.2", "sends a literal without a name", ask(b"\0"), BAD),
    Case("7541/5.2", "sends a string longer than any block", ask(b"\0\1x" + number(2**27, 7) + b"abc"), BAD),
)
CODES = (
    Case("7541/5.2", "sends Huffman's code", ask(huffman(b"\x1c\x64")), OK),
    Case("7541/5.2", "sends an empty string in Huffman's code", ask(huffman(b"")), OK),
    Case("7541/5.2", "pads a code with zeros", ask(huffman(b"\x18")), BAD),
    Case("7541/5.2", "pads a code with eight bits", ask(huffman(b"\x1f\xff")), BAD),
    Case("7541/5.2", "sends a code that is only padding", ask(huffman(b"\xff")), BAD),
    Case("7541/5.2", "sends the end of string", ask(huffman(b"\xff\xff\xff\xff")), BAD),
    Case("7541/5.2", "sends the end of string behind a letter", ask(huffman(b"\x1f\xff\xff\xff\xff")), BAD),
    Case("7541/5.2", "breaks a code off", ask(huffman(b"\xff\xfe")), BAD),
)
LISTS = (
    Case("9113/10.5.1", "sends a list below the limit", continued(call(ECHO, literal(b"x", b"v" * 90) * 90), 4000), OK),
    Case(
        "9113/10.5.1", "sends a list over the limit", continued(call(ECHO, literal(b"x", b"v" * 100) * 150), 4000), CALM
    ),
    Case(
        "9113/10.5.1", "sends one field over the limit", continued(call(ECHO, literal(b"x", b"v" * 17_000)), 9000), CALM
    ),
    Case(
        "9113/10.5.1",
        "sends a small block that means a large list",
        ask(literal(b"x", b"v" * 4000, 0x40) + INDEX_62 * 8000),
        CALM,
    ),
    Case("9113/10.5.1", "sends small fields without value", ask(literal(b"x", b"") * 2000), CALM),
    Case(
        "9113/10.5.1",
        "sends a block over the limit",
        continued(call(ECHO, literal(b"x", b"v" * 100) * 800), 16_000),
        broken("ENHANCE_YOUR_CALM"),
    ),
)
CASES = (*INDEXES, *SIZES, *NUMBERS, *CODES, *LISTS)

"""Reading header blocks (RFC 7541): our own loop over the static table and the Huffman code of the `hpack` library.

The loop is ours for speed and for limits: what a block may cost is bounded by its length alone, since fields taken
from a table are references to it.
"""

from typing import Final

from hpack.exceptions import HPACKDecodingError
from hpack.table import HeaderTable

from kinference.wire.http2.fields import Field, Fields, field, renewed
from kinference.wire.http2.frames import ConnectionFault, ErrorCode
from kinference.wire.http2.huffman import HuffmanDecoder

STATIC: Final[Fields] = (field(b"", b""), *(field(name, value) for name, value in HeaderTable.STATIC_TABLE))
STATIC_LAST: Final = len(STATIC) - 1
TABLE_BYTES_MAX: Final = 4096
"""Of the dynamic table. We never announce another, so it is the default of the RFC."""

INDEXED: Final = 0x80
INCREMENTAL: Final = 0x40
RESIZE: Final = 0x20
INDEXED_LONG: Final = 0xFF
STATIC_BYTE_LAST: Final = INDEXED + STATIC_LAST
"""The byte of the static table's last place; those beyond count the newer entries from the end."""
MORE: Final = 0x80
"""Set in every byte of a number but the last."""
SEVEN_BITS: Final = 0x7F
INTEGER_BYTES_MAX: Final = 4
HUFFMAN_CACHED_MAX: Final = 1024
HUFFMAN_CACHED_BYTES: Final = 256
"""Decoded strings that are remembered, and how long: peers send the same names, and most values, again and again."""
NAMES_MAX: Final = 256
NAME_BYTES_MAX: Final = 64
"""Names that are remembered as judged, and how long."""


class HeaderDecoder:
    """The peer's compression context. A block that breaks it raises ConnectionFault, and it is of no use any more."""

    def __init__(self) -> None:
        self._entries: list[Field] = []
        """Of the dynamic table, oldest first."""
        self._size = 0
        self._size_max = TABLE_BYTES_MAX
        self._decode = HuffmanDecoder().decode
        self._huffman: dict[bytes, bytes] = {}
        self._names: dict[bytes, Field] = {}
        """The last judged field of each name."""
        self.changes = 0
        """Counts the changes of the dynamic table, for who remembers what a block meant."""

    def decode(self, block: bytes, at: int = 0) -> Fields:
        """The fields of a block, in order; only those from `at` on, where those before are known."""
        fields: list[Field] = []
        add, entries = fields.append, self._entries
        begin, end = at, len(block)
        try:
            while at < end:
                byte = block[at]
                if INDEXED < byte < INDEXED_LONG:  # the hot path: an index that fits into its byte
                    at += 1
                    index = byte & SEVEN_BITS
                    add(STATIC[index] if index <= STATIC_LAST else entries[STATIC_LAST - index])
                elif byte >= INDEXED:
                    index, at = _integer(block, at, SEVEN_BITS)
                    add(self._entry(index))
                elif byte >= INCREMENTAL:
                    entry, at = self._literal(block, at, 0x3F)
                    self._insert(entry)
                    add(entry)
                elif byte >= RESIZE:
                    if fields or begin:
                        raise ConnectionFault(ErrorCode.COMPRESSION_ERROR, "a table resized amid a block")
                    size, at = _integer(block, at, 0x1F)
                    self._resize(size)
                else:
                    entry, at = self._literal(block, at, 0x0F)
                    add(entry)
        except IndexError:
            raise ConnectionFault(
                ErrorCode.COMPRESSION_ERROR, "a header block that breaks off, or a bad index"
            ) from None
        except HPACKDecodingError:
            raise ConnectionFault(ErrorCode.COMPRESSION_ERROR, "a bad Huffman code in a header block") from None
        return tuple(fields)

    def indexed(self, run: bytes) -> Fields:
        """The fields at the beginning of a block that are a byte each: the same as `decode`, and faster."""
        entries = self._entries
        try:
            return tuple(
                [
                    STATIC[byte - INDEXED] if byte <= STATIC_BYTE_LAST else entries[STATIC_BYTE_LAST - byte]
                    for byte in run
                ]
            )
        except IndexError:
            raise ConnectionFault(ErrorCode.COMPRESSION_ERROR, "a bad index in a header block") from None

    def _entry(self, index: int) -> Field:
        if index == 0:
            raise IndexError
        return STATIC[index] if index <= STATIC_LAST else self._entries[STATIC_LAST - index]

    def _literal(self, block: bytes, at: int, mask: int) -> tuple[Field, int]:
        index = block[at] & mask
        if index == 0:
            name, at = self._string(block, at + 1)
            value, at = self._string(block, at)
            known = self._names.get(name)
            return (self._named(name, value) if known is None else renewed(known, value)), at
        index, at = (index, at + 1) if index < mask else _integer(block, at, mask)
        value, at = self._string(block, at)
        return renewed(self._entry(index), value), at

    def _named(self, name: bytes, value: bytes) -> Field:
        """A field whose name was not seen yet."""
        read = field(name, value)
        if len(name) <= NAME_BYTES_MAX:
            if len(self._names) >= NAMES_MAX:
                self._names.clear()
            self._names[name] = read
        return read

    def _string(self, block: bytes, at: int) -> tuple[bytes, int]:
        length = block[at]
        at += 1
        is_packed = length >= INDEXED
        if is_packed:
            length &= SEVEN_BITS
        if length == SEVEN_BITS:
            length, at = _integer(block, at - 1, SEVEN_BITS)
        stop = at + length
        if stop > len(block):
            raise IndexError
        text = block[at:stop]
        if is_packed:
            known = self._huffman.get(text)
            text = self._unpacked(text) if known is None else known
        return text, stop

    def _unpacked(self, packed: bytes) -> bytes:
        """A string that was not seen yet."""
        text = self._decode(packed)
        if len(packed) <= HUFFMAN_CACHED_BYTES:
            if len(self._huffman) >= HUFFMAN_CACHED_MAX:
                self._huffman.clear()
            self._huffman[packed] = text
        return text

    def _insert(self, entry: Field) -> None:
        self.changes += 1
        self._size += entry[3]
        self._entries.append(entry)
        if self._size > self._size_max:
            self._evict()

    def _resize(self, size: int) -> None:
        if size > TABLE_BYTES_MAX:
            raise ConnectionFault(ErrorCode.COMPRESSION_ERROR, f"a table of {size} bytes, {TABLE_BYTES_MAX} at most")
        self.changes += 1
        self._size_max = size
        self._evict()

    def _evict(self) -> None:
        entries, size, gone = self._entries, self._size, 0
        while size > self._size_max:
            size -= entries[gone][3]
            gone += 1
        self._size = size
        del entries[:gone]


def list_bytes(fields: Fields) -> int:
    """The size of a list as SETTINGS_MAX_HEADER_LIST_SIZE counts it."""
    return sum([size for _, _, _, size in fields])


def _integer(block: bytes, at: int, mask: int) -> tuple[int, int]:
    """A number that begins in the masked bits of a byte."""
    number = block[at] & mask
    at += 1
    if number < mask:
        return number, at
    for shift in range(0, 7 * INTEGER_BYTES_MAX, 7):
        byte = block[at]
        at += 1
        number += (byte & SEVEN_BITS) << shift
        if byte < MORE:
            return number, at
    raise ConnectionFault(ErrorCode.COMPRESSION_ERROR, "a number without end in a header block")


def literal(name: bytes, value: bytes) -> bytes:
    """A field as we write it: whole, leaving the peer's table alone, so that a block is the same bytes every time."""
    return b"\x00" + _length(name) + name + _length(value) + value


def _length(text: bytes) -> bytes:
    length = len(text)
    if length < SEVEN_BITS:
        return bytes((length,))
    rest, encoded = length - SEVEN_BITS, bytearray((SEVEN_BITS,))
    while rest >= MORE:
        encoded.append(rest & SEVEN_BITS | MORE)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)

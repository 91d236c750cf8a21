"""A few lines of protobuf, so that the suite shares no code with the server that it judges."""

from typing import Final, TypeAlias

Fields: TypeAlias = dict[int, int | bytes]
"""A message by field number. Of a repeated field the last value counts."""

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_FIXED_BYTES: Final = {_FIXED64: 8, _FIXED32: 4}
_VARINT_BYTES_MAX = 10


class Malformed(ValueError):
    """Bytes that are no protobuf message."""


def varint(number: int) -> bytes:
    """A whole number from 0 up, seven bits a byte."""
    encoded = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def encode(fields: Fields) -> bytes:
    """A message: numbers as varints, bytes with their length."""
    message = b""
    for number, value in fields.items():
        if isinstance(value, bytes):
            message += varint(number << 3 | _LENGTH) + varint(len(value)) + value
        else:
            message += varint(number << 3 | _VARINT) + varint(value)
    return message


def decode(message: bytes) -> Fields:
    """The fields of a message. Raises Malformed."""
    fields, at = Fields(), 0
    while at < len(message):
        key, at = _read_varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            fields[key >> 3], at = _read_varint(message, at)
            continue
        if kind == _LENGTH:
            length, at = _read_varint(message, at)
        elif kind in _FIXED_BYTES:
            length = _FIXED_BYTES[kind]
        else:
            raise Malformed(f"field {key >> 3} has the unknown wire type {kind}")
        if at + length > len(message):
            raise Malformed(f"field {key >> 3} goes beyond the end of its message")
        fields[key >> 3], at = message[at : at + length], at + length
    return fields


def number(fields: Fields, field: int) -> int:
    """A number, 0 where the field is absent. Raises Malformed when it is none."""
    value = fields.get(field, 0)
    if isinstance(value, bytes):
        raise Malformed(f"field {field} is not a number")
    return value


def octets(fields: Fields, field: int) -> bytes:
    """Bytes, none where the field is absent. Raises Malformed when it is a number."""
    value = fields.get(field, b"")
    if isinstance(value, int):
        raise Malformed(f"field {field} is a number")
    return value


def text(fields: Fields, field: int) -> str:
    """A string, which protobuf wants to be UTF-8. Raises Malformed."""
    try:
        return octets(fields, field).decode()
    except UnicodeDecodeError:
        raise Malformed(f"field {field} is not UTF-8") from None


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(message[at : at + _VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << 7 * index
        if byte <= 0x7F:  # noqa: PLR2004 - the last byte has no high bit
            return value, at + index + 1
    raise Malformed("a number that does not end")

"""JSON in and out for translation: numbers keep their digits, keys their order, and the text is one line."""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Final, TypeVar

import msgspec

from kinference.shapes.ir import Json
from kinference.shapes.scan import BadBody, decode, mend_surrogates

T = TypeVar("T")

_BACKSLASH: Final = b"\\"[0]
_BRACE: Final = b"{"[0]
"""Numbers: to look for a byte by its number is ten times as fast as by bytes of one."""
_ANY: Final = msgspec.json.Decoder(msgspec.Raw)
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_DECODER: Final = msgspec.json.Decoder(float_hook=Decimal)
_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")
_UNREADABLE: Final = "is not JSON"


def loads(text: bytes) -> object:
    """Decode, lone surrogate escapes as U+FFFD. Raises BadBody."""
    try:
        return decode(_DECODER, text)
    except InvalidOperation:
        raise BadBody("body has a number out of range") from None


def loads_mended(text: bytes) -> tuple[object, bool]:
    """As `loads`, and whether there was a lone surrogate to be replaced. Raises BadBody."""
    try:
        return _DECODER.decode(text), False
    except (msgspec.DecodeError, RecursionError, InvalidOperation):
        return loads(text), True


def dumps(value: object) -> bytes:
    """Encode on one line."""
    return _ENCODER.encode(value)


def plain(decoder: msgspec.json.Decoder[T], text: bytes) -> T | None:
    """What a decoder of a narrow kind reads; None of whatever is of another."""
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def as_object(text: str) -> Json | None:
    """The object that a text is the JSON of; "" is the empty one, and anything else is None."""
    if not text.strip():
        return {}
    try:
        value = loads(text.encode("utf-8", "replace"))
    except BadBody:
        return None
    return value if isinstance(value, dict) else None


def object_text(text: str) -> bytes | None:
    """The text as it can stand inside other JSON, when it is that of an object; None when it is not."""
    if not text.strip():
        return b"{}"
    encoded = text.encode("utf-8", "replace")
    if encoded[0] == _BRACE and _BACKSLASH not in encoded:  # which leaves no key that could be written wrongly
        return None if plain(_ANY, encoded) is None else encoded
    if plain(_OBJECT, encoded) is not None:
        return encoded
    mended = mend_surrogates(encoded)
    return None if plain(_OBJECT, mended) is None else mended


def is_complete(text: str) -> bool:
    """Whether a text is a whole JSON value."""
    try:
        loads(text.encode("utf-8", "replace"))
    except BadBody:
        return False
    return True


# --- narrowing, with the place in the message ------------------------------------------------------


def object_of(value: object, where: str) -> Json:
    """The value as an object. Raises BadBody."""
    if isinstance(value, dict):
        return value
    raise BadBody(f"{where}: wrong type; expected an object")


def list_of(value: object, where: str) -> Sequence[object]:
    """The value as a list; null is an empty one. Raises BadBody."""
    if value is None:
        return ()
    if isinstance(value, list):
        return value
    raise BadBody(f"{where}: wrong type; expected an array")


def string_of(value: object, where: str) -> str:
    """The value as a string; null is an empty one. Raises BadBody."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise BadBody(f"{where}: wrong type; expected a string")


def count_of(value: object, where: str) -> int | None:
    """The value as a count, also where it was written as 1000.0; null is None. Raises BadBody."""
    if value is None:
        return None
    if (type(value) is int or type(value) is Decimal) and 0 <= value < 2**63 and value == int(value):
        return int(value)
    raise BadBody(f"{where}: wrong type; expected a whole number")


def number_of(value: object, where: str) -> int | Decimal | None:
    """The value as a number, as it was written; null is None. Raises BadBody."""
    if value is None or type(value) is int or type(value) is Decimal:
        return value
    raise BadBody(f"{where}: wrong type; expected a number")


def bool_of(value: object, where: str) -> bool | None:
    """The value as true or false; null is None. Raises BadBody."""
    if value is None or isinstance(value, bool):
        return value
    raise BadBody(f"{where}: wrong type; expected true or false")


def strings_of(value: object, where: str) -> tuple[str, ...]:
    """One string or several. Raises BadBody."""
    if isinstance(value, str):
        return (value,)
    return tuple(string_of(one, where) for one in list_of(value, where))

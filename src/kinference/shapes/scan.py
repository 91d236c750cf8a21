"""JSON as bytes: whether a body is sound, and where the members of an object lie, without building its values."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeVar

import msgspec

DEPTH_MAX: Final = 128
"""Deepest nesting of arrays and objects that a body may have; engines give up not far beyond."""
MEMBERS_MAX: Final = 4096
"""Most members, duplicates counted, that an object may have where its bytes are to be changed; requests have dozens."""

_MESSAGE_CHARS_MAX: Final = 200
_BUILD_BYTES_MAX: Final = 1 << 20
_LAY_OUT_BYTES_MAX: Final = 1 << 17
"""A text becomes some 450 times as long at worst, when it nests as deep as the decoder goes."""
_COUNTED_BYTES_MAX: Final = 1 << 12
"""In so short a text counting takes less than to find the first ones."""
_INDENT: Final = b"\n" + b" " * DEPTH_MAX
"""Stands before a value within so many others, and in no string, which can hold no line break."""

_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_HIGH: Final = rb"[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = rb"[dD][c-fC-F][0-9a-fA-F]{2}"
_LONE_SURROGATE: Final = re.compile(rb"\\u(?:%b(?!\\u%b)|%b(?<!\\u%b\\u%b))" % (_HIGH, _LOW, _LOW, _HIGH, _LOW))
_NO_UTF8: Final = b"\xff\xff"
_BACKSLASH: Final = b"\\"[0]
"""A number: to look for a byte by its number is ten times as fast as by bytes of one."""
_MEMBER: Final = re.compile(rb'[\s,]*+("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*+:\s*+', re.DOTALL)
_TRAILING: Final = re.compile(r"trailing characters \(byte (\d+)\)")
_AFTER_VALUE: Final = re.compile(rb"\s*[,}]")
_BRACKETS_ONLY: Final = bytes.maketrans(b"{}", b"[]")
_NO_ESCAPES: Final = bytes(byte for byte in range(256) if byte not in b'[]{}"\\/bfnrtu')
_NO_MARKS: Final = bytes(byte for byte in range(256) if byte not in b'[]{}"')

T = TypeVar("T")


class BadBody(ValueError):
    """A body that cannot be routed. The message says where and what would help, and never quotes the body."""

    def __init__(self, message: str) -> None:
        super().__init__(message[:_MESSAGE_CHARS_MAX])


class Member(NamedTuple):
    """One key of an object and where its value's bytes lie."""

    key: str
    start: int
    end: int


def decode(decoder: msgspec.json.Decoder[T], text: bytes) -> T:
    """Decode, taking lone surrogate escapes as engines do. Raises BadBody."""
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise BadBody(f"body has a wrong type: {error}") from None
    except msgspec.DecodeError as error:
        if not text.strip():
            raise BadBody("body is not JSON: it is empty; send the request as JSON") from None
        mended = mend_surrogates(text)
        if mended == text:
            raise BadBody(f"body is not JSON: {error}") from None
    except RecursionError:
        raise _too_deep() from None
    return decode(decoder, mended)


def mend_surrogates(text: bytes) -> bytes:
    r"""Turn each lone surrogate escape such as `\ud83d` into `\ufffd`: of equal length, so offsets stay true.

    Python's own JSON reader lets them pass and clients that cut text inside an emoji do send them; msgspec does not.
    """
    if not _SURROGATE.search(text):
        return text
    escaped_away = text.replace(rb"\\", _NO_UTF8)  # so that every backslash left begins an escape
    return _LONE_SURROGATE.sub(rb"\\ufffd", escaped_away).replace(_NO_UTF8, rb"\\")


def has(text: bytes, mark: bytes) -> bool:
    """Whether a mark stands in a long text, in a third of `in`'s time: from the end Python skips what cannot match."""
    return text.rfind(mark) >= 0


def check_utf8(text: bytes) -> None:
    """Raise BadBody where the bytes are not UTF-8, which msgspec does not notice in values that it skips."""
    if text.isascii():
        return
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise BadBody(f"body is not UTF-8: invalid byte at {error.start}") from None


def check_depth(text: bytes) -> None:
    """Raise BadBody when valid JSON nests deeper than DEPTH_MAX, brackets in strings left aside."""
    if not _has_more_than(DEPTH_MAX // 2, b"{", text) and not _has_more_than(DEPTH_MAX // 2, b"[", text):
        return  # not even with the brackets in strings
    if len(text) <= _LAY_OUT_BYTES_MAX and not _is_indented_deep(text):
        return
    builds = _BACKSLASH in text and len(text) <= _BUILD_BYTES_MAX
    if _is_deep_by_value(text) if builds else _is_deep_by_bracket(text):
        raise _too_deep()


def _is_indented_deep(text: bytes) -> bool:
    """Whether the text could be too deep as lines show it that are indented by level; quick, and false for most."""
    try:
        return has(msgspec.json.format(text, indent=1), _INDENT)
    except (msgspec.DecodeError, RecursionError):  # also where it has to be mended first
        return True


def _is_deep_by_value(text: bytes) -> bool:
    """Quicker where strings hold escapes, at the price of memory: values may take twenty times the text's."""
    level = [decode(_VALUES, text)]
    for _ in range(DEPTH_MAX):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
        if not level:
            return False
    return True


def _is_deep_by_bracket(text: bytes) -> bool:
    if _BACKSLASH in text:
        text = text.translate(None, _NO_ESCAPES).replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = text.translate(_BRACKETS_ONLY, _NO_MARKS).replace(b'""', b"")  # drops strings without a bracket
    brackets = b"".join(marks.split(b'"')[::2])
    for _ in range(DEPTH_MAX):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")  # peels the innermost level everywhere
    return bool(brackets)


def _has_more_than(count: int, byte: bytes, text: bytes) -> bool:
    if len(text) <= _COUNTED_BYTES_MAX:
        return text.count(byte) > count
    position = -1
    for _ in range(count + 1):
        position = text.find(byte, position + 1)
        if position < 0:
            return False
    return True


def members(text: bytes) -> Iterator[Member]:
    """Walk an object's own members in order, duplicate keys included. Raises BadBody, also where there are too many."""
    text, values = _object(text)
    position = text.index(b"{") + 1
    for _ in range(MEMBERS_MAX):
        token = _MEMBER.match(text, position)
        if token is None:
            return
        key, start = decode(_KEY, token[1]), token.end()
        value = values[key]  # of the key's last duplicate, and so most often this one
        position = start + memoryview(value).nbytes
        if not text.startswith(value, start) or not _AFTER_VALUE.match(text, position):
            position = _skip(text, start)
        yield Member(key, start, position)
    if _MEMBER.match(text, position):
        raise BadBody(f"an object has more than {MEMBERS_MAX} members; send fewer")


def _object(text: bytes) -> tuple[bytes, dict[str, msgspec.Raw]]:
    """The members by key, and the text that they are slices of: mended where it had to be, which few have."""
    try:
        return text, _OBJECT.decode(text)
    except (msgspec.DecodeError, RecursionError):
        mended = mend_surrogates(text)
        return mended, decode(_OBJECT, mended)


def _skip(text: bytes, start: int) -> int:
    """Where the JSON value at `start` ends, found without building it: a hostile one would take gigabytes.

    Reading the value alone fails at the first character after it, and the failure tells where that is.
    """
    try:
        _ANY.decode(memoryview(text)[start:])
    except msgspec.DecodeError as error:
        if place := _TRAILING.search(str(error)):
            following = start + int(place[1]) - 1
            return start + len(text[start:following].rstrip())
    except RecursionError:
        raise _too_deep() from None
    raise BadBody("body is not JSON")


def _too_deep() -> BadBody:
    return BadBody(f"body nests deeper than {DEPTH_MAX} levels; send a flatter one")


_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_VALUES: Final = msgspec.json.Decoder()
_KEY: Final = msgspec.json.Decoder(str)
_ANY: Final = msgspec.json.Decoder(msgspec.Raw)

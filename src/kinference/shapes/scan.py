"""JSON as bytes: whether a body is sound, and where the members of an object lie, without building its values."""

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeVar

import msgspec

DEPTH_MAX: Final = 128
"""Deepest nesting of arrays and objects that a body may have; engines give up not far beyond."""

_MESSAGE_CHARS_MAX: Final = 200
_BUILD_BYTES_MAX: Final = 1 << 20

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
_MEMBER = re.compile(rb'[\s,]*+("[^"\\]*+(?:\\.[^"\\]*+)*+")\s*+:\s*+', re.DOTALL)
_AFTER_VALUE = re.compile(rb"\s*[,}]")
_BRACKETS_ONLY = bytes.maketrans(b"{}", b"[]")
_NO_ESCAPES = bytes(byte for byte in range(256) if byte not in b'[]{}"\\/bfnrtu')
_NO_MARKS = bytes(byte for byte in range(256) if byte not in b'[]{}"')

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
    return _ESCAPE.sub(lambda match: rb"\ufffd" if match[1] else match[0], text)


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
    builds = b"\\" in text and len(text) <= _BUILD_BYTES_MAX
    if _is_deep_by_value(text) if builds else _is_deep_by_bracket(text):
        raise _too_deep()


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
    if b"\\" in text:
        text = text.translate(None, _NO_ESCAPES).replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = text.translate(_BRACKETS_ONLY, _NO_MARKS).replace(b'""', b"")  # drops strings without a bracket
    brackets = b"".join(marks.split(b'"')[::2])
    for _ in range(DEPTH_MAX):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")  # peels the innermost level everywhere
    return bool(brackets)


def _has_more_than(count: int, byte: bytes, text: bytes) -> bool:
    position = -1
    for _ in range(count + 1):
        position = text.find(byte, position + 1)
        if position < 0:
            return False
    return True


def members(text: bytes) -> Iterator[Member]:
    """Walk an object's own members in order, duplicate keys included. Raises BadBody."""
    values = decode(_OBJECT, text)
    characters = ""
    position = text.index(b"{") + 1
    while token := _MEMBER.match(text, position):
        key, start = decode(_KEY, token[1]), token.end()
        value = values[key]  # of the key's last duplicate, and so most often this one
        position = start + memoryview(value).nbytes
        if not text.startswith(value, start) or not _AFTER_VALUE.match(text, position):
            characters = characters or text.decode("latin-1")  # one byte a character keeps positions true
            position = _skip(characters, start)
        yield Member(key, start, position)


def _skip(characters: str, start: int) -> int:
    """Where the JSON value at `start` ends."""
    try:
        return _SKIP.raw_decode(characters, start)[1]
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> BadBody:
    return BadBody(f"body nests deeper than {DEPTH_MAX} levels; send a flatter one")


_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_VALUES = msgspec.json.Decoder()
_KEY = msgspec.json.Decoder(str)
_SKIP = json.JSONDecoder(parse_int=str, parse_float=str)

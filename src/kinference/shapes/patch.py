"""Change one value of a request body and leave every other byte alone: float spelling, key order and unknown fields
survive, and with them every provider's and engine's prefix cache.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import msgspec

from kinference.shapes.scan import BadBody, Member, members

_COMMA: Final = re.compile(rb"\s*,\s*")
_STREAM_OPTIONS: Final = b'"stream_options":{"include_usage":true}'


def replace_model(body: bytes, model: str) -> bytes:
    """Name another model. Every duplicate of the top-level key changes, since engines differ on which of them counts.

    Raises BadBody when the body is no JSON object or names no model.
    """
    spans = [member for member in members(body) if member.key == "model"]
    if not spans:
        raise BadBody("model: missing; name the model to serve the request")
    return splice(body, [(span, msgspec.json.encode(model)) for span in spans])


def replace_member(body: bytes, key: str, member: bytes) -> bytes:
    """Put another member, key and all, in the place of each that has this key. Raises BadBody for no JSON object."""
    return splice(body, [(one, member) for one in _whole(body, key)])


def without_member(body: bytes, key: str) -> bytes:
    """Leave out each member that has this key; the very same object when there is none. Raises BadBody."""
    pieces, cut = list[bytes](), len(body)
    found = list(members(body))
    for before, one in reversed(list(pairwise((Member("", 0, body.find(b"{") + 1), *found)))):
        if one.key != key:
            continue
        start, end = _key_of(body, one), one.end
        if after := _COMMA.match(body, end, cut):
            end = after.end()
        else:
            start = before.end + len(body[before.end : start].rstrip().removesuffix(b","))
        pieces.append(body[end:cut])
        cut = start
    return b"".join((body[:cut], *reversed(pieces))) if pieces else body


def _whole(body: bytes, key: str) -> Iterator[Member]:
    """Members with this key, and where each begins with it."""
    return (Member(key, _key_of(body, one), one.end) for one in members(body) if one.key == key)


def _key_of(body: bytes, member: Member) -> int:
    return body.rindex(b'"', 0, body.rindex(b'"', 0, member.start))


def set_member(body: bytes, key: str, value: str) -> bytes:
    """Give a member that is a string, whatever there was. Raises BadBody for no JSON object."""
    found, written = list(members(body)), msgspec.json.encode(value)
    own = [(member, written) for member in found if member.key == key]
    return splice(body, own) if own else _insert(body, b'"%b":%b' % (key.encode(), written), is_empty=not found)


def add_include_usage(body: bytes) -> bytes:
    """As `set_include_usage`, for a body that is known to have members and no `stream_options` among them."""
    return _insert(body, _STREAM_OPTIONS, is_empty=False)


def set_include_usage(body: bytes) -> bytes:
    """Ask a streaming chat or completions body for its usage chunk; the very same object when it already does.

    A `stream_options` that is neither an object nor null stays: the engine's own complaint is the best answer to it.
    Raises BadBody when the body is no JSON object.
    """
    found = list(members(body))
    options = [member for member in found if member.key == "stream_options"]
    if not options:
        return _insert(body, _STREAM_OPTIONS, is_empty=not found)
    return splice(body, [(option, _with_usage(body[option.start : option.end])) for option in options])


def _with_usage(options: bytes) -> bytes:
    if options == b"null":
        return b'{"include_usage":true}'
    if not options.startswith(b"{"):
        return options
    found = list(members(options))
    flags = [member for member in found if member.key == "include_usage"]
    if not flags:
        return _insert(options, b'"include_usage":true', is_empty=not found)
    return splice(options, [(flag, b"true") for flag in flags])


def _insert(text: bytes, member: bytes, *, is_empty: bool) -> bytes:
    brace = text.index(b"{") + 1
    return text[:brace] + member + (b"" if is_empty else b",") + text[brace:]


def splice(text: bytes, changes: list[tuple[Member, bytes]]) -> bytes:
    """The text with other values; the very same object when they are none."""
    if all(text[span.start : span.end] == value for span, value in changes):
        return text
    pieces: list[bytes] = []
    position = 0
    for span, value in changes:
        pieces += (text[position : span.start], value)
        position = span.end
    return b"".join((*pieces, text[position:]))

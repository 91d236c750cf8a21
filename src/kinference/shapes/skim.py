"""The ordinary events of a chat stream, counted without being taken apart: engines send them by the dozen in one read,
and nearly all of them tell nothing but more text.
"""

import re
from typing import Final, NamedTuple

from kinference.shapes.sse import CR

_TELLING: Final = (b'"error"', b"data: [DONE]", b"data: \n")
"""What an ordinary event has nowhere: a search costs a tenth of a pattern's."""
_USAGE: Final = re.compile(rb'"usage"\s*:\s*\{')
_FINISHED: Final = re.compile(rb'"finish_reason"\s*:\s*"')
_CONTENT: Final = b'"content":"'
_NO_CONTENT: Final = b'"content":""'
WRITTEN: Final = re.compile(rb'"(?:content|text|reasoning|reasoning_content|refusal|arguments|name|data)"\s*:\s*"(?!")')
"""Something that the model wrote."""


class Skimmed(NamedTuple):
    """What leads a chunk: so many bytes, which are so many whole events, of which so many carry content."""

    size: int
    events: int
    contents: int


NOTHING: Final = Skimmed(0, 0, 0)


def skim(chunk: bytes) -> Skimmed:
    """The ordinary events that lead a chunk, which begins where an event does: one line of data each, and nothing of
    usage, an error or an end in them.
    """
    end = _events_end(chunk, _ordinary_end(chunk))
    if not end or not chunk.startswith(b"data: ") or CR in chunk:
        return NOTHING
    events = chunk[: end - 2].split(b"\n\n")
    if chunk.count(b"\n", 0, end) != 2 * len(events) or chunk.count(b"\n\ndata: ", 0, end) != len(events) - 1:
        return NOTHING
    if _NO_CONTENT in chunk:
        doubtful = [event for event in events if _CONTENT not in event or _NO_CONTENT in event]
    else:
        doubtful = [event for event in events if _CONTENT not in event]
    empty = len([event for event in doubtful if not WRITTEN.search(event)])
    return Skimmed(end, len(events), len(events) - empty)


def _ordinary_end(chunk: bytes) -> int:
    """Where the first thing stands that an ordinary event does not have."""
    end = len(chunk)
    for mark in _TELLING:
        found = chunk.find(mark, 0, end)
        if found >= 0:
            end = found
    for pattern in (_USAGE, _FINISHED):
        if match := pattern.search(chunk, 0, end):
            end = match.start()
    return end


def _events_end(chunk: bytes, end: int) -> int:
    """Where the last event ends that is whole before there."""
    last = chunk.rfind(b"\n\n", 0, end)
    return 0 if last < 0 else last + 2

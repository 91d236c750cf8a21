"""The ordinary events of a chat stream, counted without being taken apart: engines send them by the dozen in one read,
and nearly all of them tell nothing but more text.
"""

import re
from math import inf
from typing import Final, TypeAlias

from kinference.shapes.sse import CR

_TELLING: Final = (b'"error"', b"data: [DONE]", b"data: \n")
"""What an ordinary event has nowhere: a search costs a tenth of a pattern's."""
_USAGE: Final = re.compile(rb'"usage"\s*:\s*\{')
_FINISHED: Final = re.compile(rb'"finish_reason"\s*:\s*"')
_CONTENT: Final = b'"content":"'
_NO_CONTENT: Final = b'"content":""'
WRITTEN: Final = re.compile(rb'"(?:content|text|reasoning|reasoning_content|refusal|arguments|name|data)"\s*:\s*"(?!")')
"""Something that the model wrote."""


_TEXT: Final = re.compile(rb'[^"\r\n]+')

Skimmed: TypeAlias = tuple[int, int, int]
"""What leads a chunk: so many bytes, which are so many whole events, of which so many carry content."""

NOTHING: Final[Skimmed] = (0, 0, 0)


class Skimmer:
    """Skims one stream. Its events are alike but for the text, as a rule, and come one at a time: one that is like the
    last is known by that.
    """

    def __init__(self) -> None:
        self._before = self._after = b""
        self._least = inf

    def skim(self, chunk: bytes) -> Skimmed:
        """As the function of the same name."""
        size = len(chunk)
        if (
            size > self._least
            and chunk.startswith(self._before)
            and chunk.endswith(self._after)
            and _TEXT.fullmatch(chunk, len(self._before), size - len(self._after))
        ):
            return size, 1, 1
        skimmed = skim(chunk)
        if skimmed == (size, 1, 1):
            self._learn(chunk)
        return skimmed

    def _learn(self, chunk: bytes) -> None:
        """Keep what stands around the text of an event."""
        begin = chunk.find(_CONTENT) + len(_CONTENT)
        if begin >= len(_CONTENT):
            self._before, self._after = chunk[:begin], chunk[chunk.find(b'"', begin) :]
            self._least = len(self._before) + len(self._after)


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
    return end, len(events), len(events) - empty


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

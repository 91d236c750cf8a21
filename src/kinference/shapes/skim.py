"""The ordinary events of a chat stream, counted without being taken apart: engines send them by the dozen in one read,
and nearly all of them tell nothing but more text.
"""

import re
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


_TEXT: Final = re.compile(rb'[^"\r\n]+(?:(?<=\\)"[^"\r\n]*)*')
"""A text as it stands in JSON: no mark stands in it, since each has a quote and no backslash before it."""

Skimmed: TypeAlias = tuple[int, int, int]
"""What leads a chunk: so many bytes, which are so many whole events, of which so many carry content."""

NOTHING: Final[Skimmed] = (0, 0, 0)


class Skimmer:
    """Skims one stream. Its events are alike but for their texts, as a rule: those that are like one before are found
    by what stands around the texts, at a third of what looking through them takes.
    """

    def __init__(self) -> None:
        self._before = self._after = b""

    def skim(self, chunk: bytes) -> Skimmed:
        """What the function of the same name finds."""
        first = NOTHING
        if not self._before or not chunk.startswith(self._before):
            first = self._learn(chunk)
            if not first[0]:
                return NOTHING
        alike = self._alike(chunk, first[0])
        found = first[0] + alike[0]
        rest = skim(chunk[found:]) if found < len(chunk) else NOTHING
        return found + rest[0], first[1] + alike[1] + rest[1], first[2] + alike[2] + rest[2]

    def _learn(self, chunk: bytes) -> Skimmed:
        """Skim the first event alone, and keep what stands around its text."""
        end = chunk.find(b"\n\n") + 2
        first = skim(chunk[:end])
        begin = chunk.find(_CONTENT, 0, end) + len(_CONTENT)
        if first[2] and begin >= len(_CONTENT):
            self._before, self._after = chunk[:begin], chunk[chunk.find(b'"', begin, end) : end]
        return first

    def _alike(self, chunk: bytes, begin: int) -> Skimmed:
        """The events from there to the last one that ends as the one that was kept, if all are like it."""
        end = chunk.rfind(self._after, begin)
        if end < begin or not self._before or not chunk.startswith(self._before, begin):
            return NOTHING
        texts = chunk[begin + len(self._before) : end].split(self._after + self._before)
        if b"" in texts or not _TEXT.fullmatch(b"".join(texts)):
            return NOTHING
        return end + len(self._after) - begin, len(texts), len(texts)


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

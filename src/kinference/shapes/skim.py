"""The ordinary events of a stream, counted without being taken apart: engines send them by the dozen in one read, and
nearly all of them tell nothing but more text.
"""

import re
from operator import itemgetter
from typing import Final, TypeAlias

from kinference.shapes.sse import CR

_TELLING: Final[tuple[bytes, ...]] = (b'"error"', b"data: [DONE]", b"data: \n")
"""What an ordinary event has nowhere: a search costs a tenth of a pattern's."""
_USAGE: Final = re.compile(rb'"usage"\s*:\s*\{')
_FINISHED: Final = re.compile(rb'"finish_reason"\s*:\s*"')
_CONTENT: Final = b'"content":"'
_NO_CONTENT: Final = b'"content":""'
WRITTEN: Final = re.compile(rb'"(?:content|text|reasoning|reasoning_content|refusal|arguments|name|data)"\s*:\s*"(?!")')
"""Something that the model wrote."""
_AFTER_TEXT: Final[tuple[bytes, ...]] = (b",", b"}", b"]")
"""What follows a text that is no key."""

_TEXT: Final = re.compile(rb'[^"\r\n]++(?:(?<=\\)"[^"\r\n]*+)*+')
"""A text as it stands in JSON: no mark stands in it, since each has a quote and no backslash before it."""
_SEAM: Final = b"\n\ndat"
"""Where one event ends and the next one begins. For more than five bytes Python prepares each search, which costs more
than the search."""
_SEAM_BEFORE: Final = 2
_SEAM_AFTER: Final = 3

MESSAGES_DELTAS: Final = re.compile(rb"(?:event: content_block_delta\ndata: .++\n\n)++")
RESPONSES_DELTAS: Final = re.compile(rb"(?:event: .*+(?<=\.delta)\ndata: .++\n\n)++")
"""Events that tell by their names alone that they carry content: a line of the name and one of data each."""
_LINES: Final = 3
"""Of such an event, the blank one included."""

Skimmed: TypeAlias = tuple[int, int, int]
"""What leads a chunk: so many bytes, which are so many whole events, of which so many carry content."""

NOTHING: Final[Skimmed] = (0, 0, 0)


class Skimming:
    """Skims one stream. By itself it finds nothing."""

    def is_one_more(self, chunk: bytes) -> bool:  # noqa: ARG002 - of streams that cannot be skimmed
        """Whether a chunk that begins where an event does is one event that carries content, like one before."""
        return False

    def skim(self, chunk: bytes) -> Skimmed:  # noqa: ARG002 - of streams that cannot be skimmed
        """What leads a chunk that begins where an event does."""
        return NOTHING


class NamedSkimmer(Skimming):
    """Of an API whose events have names."""

    def __init__(self, deltas: re.Pattern[bytes]) -> None:
        self._deltas = deltas

    def is_one_more(self, chunk: bytes) -> bool:
        return chunk.count(b"\n") == _LINES and CR not in chunk and self._deltas.fullmatch(chunk) is not None

    def skim(self, chunk: bytes) -> Skimmed:
        return skim_named(self._deltas, chunk)


class Skimmer(Skimming):
    """Skims one stream of a chat. Its events are alike but for their texts, as a rule: those that are like one before
    are found by what stands around the texts, at a third of what looking through them takes.
    """

    def __init__(self) -> None:
        self._before = self._after = b""

    def is_one_more(self, chunk: bytes) -> bool:
        """What nearly every read brings of a stream that is written as it is made."""
        before, after = self._before, self._after
        return (
            chunk.startswith(before)
            and chunk.endswith(after)
            and _TEXT.fullmatch(chunk, len(before), len(chunk) - len(after)) is not None
            and len(before) > 0
        )

    def skim(self, chunk: bytes) -> Skimmed:
        """What the function of the same name finds."""
        first = NOTHING
        if not self._before or not chunk.startswith(self._before):
            first = self._learn(chunk)
            if not first[0]:
                return NOTHING
        size, events, contents = first
        if size < len(chunk):
            alike, count = self._alike(chunk, size)
            size, events, contents = size + alike, events + count, contents + count
            if size < len(chunk):
                rest = skim(chunk[size:])
                return size + rest[0], events + rest[1], contents + rest[2]
        return size, events, contents

    def _learn(self, chunk: bytes) -> Skimmed:
        """Skim the first event alone, and keep what stands around its text."""
        end = chunk.find(b"\n\n") + 2
        first = skim(chunk[:end])
        if first[2] and (written := WRITTEN.search(chunk, 0, end)):
            begin = written.end()
            text = _TEXT.match(chunk, begin, end)
            if text is not None and chunk.startswith(_AFTER_TEXT, text.end() + 1):
                self._before, self._after = chunk[:begin], chunk[text.end() : end]
        return first

    def _alike(self, chunk: bytes, begin: int) -> tuple[int, int]:
        """The events from there to the last one that ends as the one that was kept, if all are like it: how many bytes
        they are, and how many.
        """
        before, after = self._before, self._after
        end, text = chunk.rfind(after, begin), begin + len(before)
        if not before or end <= text or not chunk.startswith(before, begin):
            return 0, 0
        whole = end + len(after) - begin
        if _TEXT.fullmatch(chunk, text, end):
            return whole, 1
        within = slice(len(before) - _SEAM_AFTER, _SEAM_BEFORE - len(after))
        events = chunk[begin + _SEAM_AFTER : end + len(after) - _SEAM_BEFORE].split(_SEAM)
        texts: list[bytes] = list(map(itemgetter(within), events))
        # That these are the events, whatever they were split at, shows when they are put together again.
        again = (after + before).join(texts)
        if text + len(again) != end or not chunk.startswith(again, text):
            return 0, 0
        return (whole, len(texts)) if all(texts) and _TEXT.fullmatch(b" ".join(texts)) else (0, 0)


def skim_named(deltas: re.Pattern[bytes], chunk: bytes) -> Skimmed:
    """The events of such names that lead a chunk, which begins where an event does."""
    found = None if CR in chunk else deltas.match(chunk)
    if found is None:
        return NOTHING
    end = found.end()
    events = chunk.count(b"\n", 0, end) // _LINES
    return end, events, events


def skim(chunk: bytes) -> Skimmed:
    """The ordinary events of a chat that lead a chunk, which begins where an event does: one line of data each, and
    nothing of usage, an error or an end in them.
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

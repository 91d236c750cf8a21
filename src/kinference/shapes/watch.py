"""Watches a streamed answer go by, for a relay that forwards its bytes untouched: where it is, whether it is whole, and
what it used.

A JSON string escapes its quotes, so a quoted key found in an event's bytes is a key and never a text that names one:
most events are told apart by a search, and only those that carry usage or an error are decoded.
"""

import re
from enum import Enum, auto
from typing import Final

import msgspec

from kinference.shapes.scan import BadBody, decode
from kinference.shapes.skim import (
    MESSAGES_DELTAS,
    RESPONSES_DELTAS,
    WRITTEN,
    NamedSkimmer,
    Skimmed,
    Skimmer,
    Skimming,
)
from kinference.shapes.sse import Event
from kinference.shapes.usage import Usage, UsageReader
from kinference.vocabulary import Api


class Kind(Enum):
    """What one event is to a relay."""

    CONTENT = auto()
    """Something the model wrote: the first one ends the wait for the first token."""
    USAGE = auto()
    """Usage and nothing else, to be kept from a client that did not ask for it."""
    END = auto()
    """The stream's last event."""
    ERROR = auto()
    """The destination gave up."""
    OTHER = auto()
    """A preamble, a ping, a frame around content, or something yet unknown: to be forwarded."""


_NULL: Final = msgspec.Raw(b"null")


class _Chunk(msgspec.Struct):
    choices: list[msgspec.Raw] | None = None
    error: msgspec.Raw = _NULL

    object: str | None = None

    @property
    def is_error(self) -> bool:
        return bytes(self.error) != b"null" or self.object == "error"


class _Typed(msgspec.Struct):
    type: str = ""


_CHUNK = msgspec.json.Decoder(_Chunk)
_TYPED = msgspec.json.Decoder(_Typed)
_ANY = msgspec.json.Decoder(msgspec.Raw)

_DONE: Final = b"[DONE]"

_CONTENT: Final = b'"content":"'
_CONTENT_LENGTH: Final = len(_CONTENT)
_FINISHED = re.compile(rb'"finish_reason"\s*:\s*"')
_ENDED = re.compile(rb'"(?:finishReason|blockReason)"\s*:\s*"(?!")')
_STOPPED = re.compile(rb'"stop_reason"\s*:\s*"')
_USAGE = re.compile(rb'"usage"\s*:\s*\{')
_ERROR = re.compile(rb'"error"\s*:\s*[{"]|"object"\s*:\s*"error"')

_RESPONSES_ENDS: Final = frozenset({"response.completed", "response.incomplete"})


_ANTHROPIC: Final = Api.ANTHROPIC_MESSAGES
_RESPONSES: Final = Api.OPENAI_RESPONSES
_GEMINI: Final = Api.GEMINI
"""Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant."""


def _skimmer_of(api: Api) -> Skimming:
    """How what leads a chunk is skimmed."""
    if api is _ANTHROPIC:
        return NamedSkimmer(MESSAGES_DELTAS)
    if api is _RESPONSES:
        return NamedSkimmer(RESPONSES_DELTAS)
    return Skimming() if api is _GEMINI else Skimmer()


class StreamWatcher:
    """One streamed answer, event by event."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.skimmer = _skimmer_of(api)
        self._usage = UsageReader(api)
        self.content_events = 0
        """How many events carried content: an estimate of the tokens when no usage comes."""
        self.is_complete = False
        """The answer came to its end, by either sign that its API gives: no more is owed to the client."""
        self.is_failed = False
        """The destination reported an error inside the stream."""
        self.begun = b""
        """The event by which a stream of Responses began: it holds the response as far as it is known."""

    @property
    def usage(self) -> Usage | None:
        """The usage reported so far."""
        return self._usage.usage

    def skim(self, chunk: bytes) -> Skimmed:
        """Take note of the ordinary events that lead a chunk, as far as this API's streams can be skimmed."""
        skimmed = self.skimmer.skim(chunk)
        self.content_events += skimmed[2]
        return skimmed

    def watch(self, event: Event) -> Kind:
        """Take note of one event."""
        if not event.data:
            return Kind.OTHER
        kind = self._look(event)
        if kind is Kind.CONTENT:
            self.content_events += 1
        elif kind is Kind.END:
            self.is_complete = True
        elif kind is Kind.ERROR:
            self.is_failed = True
        return kind

    def watch_tail(self, event: Event) -> Kind:
        """As `watch`, for what was left without its blank line: half an event tells nothing."""
        return self.watch(event) if event.data == _DONE or _is_json(event.data) else Kind.OTHER

    def _look(self, event: Event) -> Kind:
        api = self._api
        if api is _ANTHROPIC:
            return self._anthropic(event)
        if api is _RESPONSES:
            return self._responses(event)
        return self._gemini(event) if api is _GEMINI else self._chat(event)

    def _chat(self, event: Event) -> Kind:
        data = event.data
        if data == _DONE:
            return Kind.END
        # `find` costs a tenth of a pattern's search, half of what `in` does, and leaves few events over for patterns.
        if event.event == "error" or (data.find(b'"error"') >= 0 and _ERROR.search(data) and _decoded(data).is_error):
            return Kind.ERROR
        if data.find(b'"finish_reason":null') < 0 and _FINISHED.search(data):
            self.is_complete = True
        if (
            data.find(b'"usage"') >= 0
            and _USAGE.search(data)
            and self._usage.read(data)
            and _decoded(data).choices == []
        ):
            return Kind.USAGE
        begin = data.find(_CONTENT)  # as nearly all engines write it; if not, there may be some all the same
        if begin >= 0 and not data.startswith(b'"', begin + _CONTENT_LENGTH):
            return Kind.CONTENT
        return Kind.CONTENT if WRITTEN.search(data) else Kind.OTHER

    def _anthropic(self, event: Event) -> Kind:
        name = event.event or _type(event.data)
        if name == "content_block_delta":
            return Kind.CONTENT
        if name in {"message_start", "message_delta"}:
            self._usage.read(event.data)
            if name == "message_delta" and _STOPPED.search(event.data):
                self.is_complete = True
        if name == "error":
            return Kind.ERROR
        return Kind.END if name == "message_stop" else Kind.OTHER

    def _gemini(self, event: Event) -> Kind:
        data = event.data
        if data.find(b'"error"') >= 0 and _ERROR.search(data) and _decoded(data).is_error:
            return Kind.ERROR
        if _ENDED.search(data):
            self.is_complete = True
        self._usage.read(data)
        return Kind.CONTENT if WRITTEN.search(data) or b'"functionCall"' in data else Kind.OTHER

    def _responses(self, event: Event) -> Kind:
        name = event.event or _type(event.data)
        if name.endswith(".delta"):
            return Kind.CONTENT
        if name in _RESPONSES_ENDS or name == "response.failed":
            self._usage.read(event.data)
        elif name == "response.created":
            self.begun = event.data
        if name in {"error", "response.failed"}:
            return Kind.ERROR
        return Kind.END if name in _RESPONSES_ENDS or event.data == _DONE else Kind.OTHER


def _type(data: bytes) -> str:
    """What an event is, from its data, for upstreams that leave the `event:` line out."""
    try:
        return decode(_TYPED, data).type
    except BadBody:
        return ""


def _decoded(data: bytes) -> _Chunk:
    try:
        return decode(_CHUNK, data)
    except BadBody:
        return _Chunk()


def _is_json(data: bytes) -> bool:
    try:
        decode(_ANY, data)
    except BadBody:
        return False
    return True

"""A stream of Chat Completions chunks taken apart, from engines that agree on little but its outline."""

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from kinference.shapes import citations, made_images
from kinference.shapes.answers import (
    ArgumentsPiece,
    Cited,
    Counted,
    Counts,
    Failed,
    Finished,
    Piece,
    ReasoningPiece,
    RefusalPiece,
    Shown,
    Started,
    TextPiece,
    ToolBegun,
)
from kinference.shapes.failures import failure_in, unlisted
from kinference.shapes.ir import Json, Sealed, Unread
from kinference.shapes.json_text import loads, plain
from kinference.shapes.logprobs import of_openai
from kinference.shapes.openai_chat.answer import (
    ENCRYPTED,
    arguments_of,
    call_id,
    counts_of,
    finish_of,
    gave_up,
    geminis_signature,
    given_up,
    loses_thoughts,
    said_in,
    text_in,
    thought_in,
)
from kinference.shapes.scan import BadBody
from kinference.shapes.sse import Event
from kinference.vocabulary import Api

_DONE: Final = b"[DONE]"
_NO_COUNTS: Final = Counts()


class _Delta(msgspec.Struct):
    """One that holds text alone: what else it could hold is not there, or null."""

    content: str
    refusal: None = None
    reasoning: None = None
    reasoning_content: None = None
    tool_calls: None = None
    annotations: None = None
    images: None = None
    audio: None = None
    reasoning_details: None = None


class _Choice(msgspec.Struct):
    delta: _Delta
    index: int = 0
    finish_reason: None = None
    logprobs: None = None


class _TextChunk(msgspec.Struct):
    choices: tuple[_Choice]
    usage: None = None
    error: None = None
    object: Literal["chat.completion.chunk", ""] = ""


_TEXT_CHUNK: Final = msgspec.json.Decoder(_TextChunk)


class ChatStreamParser:
    """Fed events, gives pieces."""

    def __init__(self) -> None:
        self._calls = _Calls()
        self._answer_id = ""
        self._is_started = False
        self._is_finished = False
        self._has_deltas = False
        self.is_complete = False
        """Either sign of a good end was seen: a finish reason, or `[DONE]`."""
        self.is_over = False

    def text_of(self, event: Event) -> str:
        """The text of a chunk that holds nothing else."""
        if event.data.find(b'"content":"') < 0 or (chunk := plain(_TEXT_CHUNK, event.data)) is None:
            return ""
        [choice] = chunk.choices
        return "" if choice.index else choice.delta.content

    def counts(self) -> Counts:
        """Usage comes in chunks of its own."""
        return _NO_COUNTS

    def feed(self, event: Event) -> list[Piece]:
        """What one event means."""
        if event.data == _DONE:
            self.is_complete = self.is_over = True
            return self.close()
        try:
            chunk = unlisted(loads(event.data)) if event.data else {}
        except BadBody:
            return []
        if not isinstance(chunk, dict) or not chunk:
            return []
        return [failure_in(chunk)] if event.event == "error" else list(self._chunk(chunk))

    def close(self) -> list[Piece]:
        """The stream has ended: the reason, where only `[DONE]` told the end."""
        if self.is_complete and not self._is_finished:
            self._is_finished = True
            return [*self._calls.rest(), Finished(finish_of(None, calls=self._calls.count > 0))]
        return []

    def _chunk(self, chunk: Json) -> Iterator[Piece]:
        if chunk.get("error") or chunk.get("object") == "error":
            yield failure_in(chunk)
            return
        usage = chunk.get("usage")
        if not self._is_started:
            self._is_started = True
            self._answer_id = text_in(chunk, "id")
            yield Started(self._answer_id, text_in(chunk, "model"), counts_of(usage, chunk.get("service_tier")))
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index", 0) == 0:
                yield from self._choice(choice)
        if isinstance(usage, dict):
            yield Counted(counts_of(usage, chunk.get("service_tier")))

    def _choice(self, choice: Json) -> Iterator[Piece]:
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._has_deltas = True
        elif not self._has_deltas:  # some servers have it under the name that it has in a whole answer
            delta = choice.get("message")
        if isinstance(delta, dict):
            yield from self._delta(delta, choice.get("logprobs"))
        reason = choice.get("finish_reason")
        if gave_up(reason):
            yield given_up(choice)
        elif isinstance(reason, str) and reason:
            self._is_finished = self.is_complete = True
            yield from self._calls.rest()
            yield Finished(finish_of(reason, calls=self._calls.count > 0))

    def _delta(self, delta: Json, probable: object) -> Iterator[Piece]:
        parted, text = said_in(delta.get("content"))
        if thought := thought_in(delta) or parted:
            yield ReasoningPiece(thought)
        if loses_thoughts(delta):
            yield ENCRYPTED
        logprobs = of_openai(probable.get("content")) if isinstance(probable, dict) else ()
        if text or logprobs:
            yield TextPiece(text, logprobs)
        yield from map(Shown, made_images.of_chat(delta.get("images")))
        yield from map(Cited, citations.of_openai(delta.get("annotations")))
        if refusal := text_in(delta, "refusal"):
            yield RefusalPiece(refusal)
        if isinstance(delta.get("audio"), dict):
            yield Unread("audio")
        for position, call in enumerate(_calls_in(delta)):
            if signature := geminis_signature(call):
                yield from self._calls.rest()
                yield Sealed(signature, Api.GEMINI)
            yield from self._calls.feed(call, position, self._answer_id)


def _calls_in(delta: Json) -> Iterator[Json]:
    """The fragments of calls, and of the one function of the older form."""
    calls = delta.get("tool_calls")
    if not isinstance(calls, list):
        old = delta.get("function_call")
        calls = [{"index": 0, "function": old}] if isinstance(old, dict) else []
    return (call for call in calls if isinstance(call, dict))


WAITING_MAX: Final = 64 * 1024
"""Characters of a call that has not begun: no name is so long, and none comes behind so much."""


CALLS_MAX: Final = 1024
"""Calls of one answer: no model makes as many, and what each of them waits for is kept."""


class _Waiting:
    """A call that has not begun: its name, of which more may come until its arguments do, and what came before that."""

    def __init__(self, *, is_free_form: bool) -> None:
        self.name, self.is_free_form = "", is_free_form
        self.texts: list[str] = []
        self.chars = 0

    def take(self, name: str, text: str) -> None:
        """Keep a fragment. One of a name that is all of it again adds nothing."""
        if name != self.name:
            self.name += name
            self.chars += len(name)
        if text:
            self.texts.append(text)
            self.chars += len(text)

    def drop(self) -> None:
        """Keep nothing: it will not begin."""
        self.name, self.texts = "", []


class _Calls:
    """Which call a fragment belongs to: by index, else by id, else the last one; and when each begins."""

    def __init__(self) -> None:
        self._by_key: dict[int | str, int] = {}
        self._ids: list[str] = []
        self._waiting: dict[int, _Waiting] = {}
        self._last = -1

    @property
    def count(self) -> int:
        return len(self._ids)

    def feed(self, call: Json, position: int, answer_id: str) -> Iterator[Piece]:
        function = call.get("function") or call.get("custom")
        function = function if isinstance(function, dict) else {}
        name = text_in(function, "name")
        number = self._number(call, position, has_name=bool(name))
        if number != self._last:
            yield from self.rest()
        if number == CALLS_MAX:
            yield Failed(f"the destination began more than {CALLS_MAX} calls of tools in one answer")
            return
        if number == len(self._ids):
            self._ids.append(text_in(call, "id") or call_id(answer_id, number))
            self._waiting[number] = _Waiting(is_free_form="custom" in call)
        self._last = number
        text = arguments_of(function.get("arguments", function.get("input")))
        waiting = self._waiting.get(number)
        if waiting is None:
            if text:
                yield ArgumentsPiece(number, text)
            return
        waiting.take(name, text)
        if waiting.name and waiting.texts:
            yield from self._begin(number, waiting)
        elif waiting.chars > WAITING_MAX:
            waiting.drop()
            yield Failed("the destination began a call of a tool and did not come to its name's end")

    def rest(self) -> Iterator[Piece]:
        """Those whose names are whole, since something else came after them."""
        for number, waiting in tuple(self._waiting.items()):
            yield from self._begin(number, waiting)

    def _begin(self, number: int, waiting: _Waiting) -> Iterator[Piece]:
        if waiting.name:
            del self._waiting[number]
            yield ToolBegun(number, self._ids[number], waiting.name, waiting.is_free_form)
            if text := "".join(waiting.texts):
                yield ArgumentsPiece(number, text)

    def _number(self, call: Json, position: int, *, has_name: bool) -> int:
        index, given = call.get("index"), text_in(call, "id")
        if not isinstance(index, int):
            if not given and not has_name and self._last >= 0:
                return self._last
            return self._by_key.setdefault(given or f"{len(self._ids)}/{position}", len(self._ids))
        known = self._by_key.get(index)
        if known is None or (has_name and given and given != self._ids[known]):  # all under one index, by their ids
            known = self._by_key[index] = len(self._ids)
        return known

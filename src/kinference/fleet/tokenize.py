"""Has engines put prompts into tokens, aside: no decision waits for it, and what is too much is left out.

The engine that was sent a prompt is asked (`/tokenize`, as vLLM has it), so that its own chat template and tokenizer
apply. Of prompts that are not text all through, or that engines put together each in its own way, it is asked about the
leading part, once it has answered: what its events show that it holds of these tokens is what it made of the prompt.
The rest, and what it cannot be asked about, stays matched by what was sent where.
"""

import asyncio
import logging
from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from kinference.core.fleet import Endpoint
from kinference.core.flight import SentPrompt
from kinference.core.prefix.engine_blocks import EngineBlocks, LinkedPrompt
from kinference.core.prefix.hashing import BLOCK_BYTES
from kinference.fleet.fetch import FETCH_FAULTS, PageLimits, post
from kinference.fleet.kv_batch import encode_extra
from kinference.ids import Seconds
from kinference.observe.metrics import KV_TOKENIZED, Metrics
from kinference.ports import Clock, Upstream
from kinference.shapes.leading_chat import is_text, leading_chat
from kinference.shapes.plain_chat import plain_chat
from kinference.vocabulary import Api

PATH: Final = "/tokenize"
WORKERS: Final = 4
WAITING_MAX: Final = 512
BODY_BYTES_MAX: Final = 1024 * 1024
WAITING_BYTES_MAX: Final = 32 * 1024 * 1024
LIMITS: Final = PageLimits(timeout=5.0, bytes_max=8 * 1024 * 1024)
REFUSED_S: Seconds = 60.0
"""How long an endpoint that cannot do it is left alone."""
_OK: Final = 200
_CHAT, _TEXT = "/chat/completions", "/completions"
PARTS_EVERY_S: Seconds = 1.0
"""So often those with a part to ask about are looked at: whether they have been answered."""
PARTS_AFTER_S: Seconds = 600.0
"""Who has not been answered by then is not asked about."""
PARTS_KNOWN_MAX: Final = 4_096
_OTHERS: Final = {"messages": Api.ANTHROPIC_MESSAGES, "responses": Api.OPENAI_RESPONSES}
"""By the end of their path: APIs that an engine puts into a chat first."""
_ABSENT: Final = msgspec.Raw()
_log = logging.getLogger(__name__)


class _Body(msgspec.Struct):
    model: str
    messages: msgspec.Raw = _ABSENT
    prompt: msgspec.Raw = _ABSENT
    tools: msgspec.Raw = _ABSENT
    tool_choice: msgspec.Raw = _ABSENT
    chat_template_kwargs: msgspec.Raw = _ABSENT
    add_generation_prompt: msgspec.Raw = _ABSENT
    continue_final_message: msgspec.Raw = _ABSENT
    add_special_tokens: msgspec.Raw = _ABSENT
    cache_salt: str | None = None


class _Tokens(msgspec.Struct):
    tokens: list[int]


@dataclass(frozen=True, slots=True)
class Question:
    """What to send to an engine, and what else sets the prompt's blocks apart there."""

    model: str
    body: bytes
    salt: str
    part_bytes: int = 0
    """How many leading bytes of the prompt it is about, where it is not about the whole, or that is to be shown."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    sent: SentPrompt
    question: Question
    at: Seconds

    @property
    def blocks(self) -> Sequence[int]:
        """Those of the prompt's blocks that the question is about."""
        part_bytes = self.question.part_bytes
        return self.sent.blocks[: part_bytes // BLOCK_BYTES] if part_bytes else self.sent.blocks


def ask_about(body: bytes, path: str) -> Question | None:
    """The question for a request's body; None where the engine would not put the same prompt together."""
    api = _OTHERS.get(path.rpartition("/")[2])
    if api is not None:
        chat = plain_chat(api, body)
        return _part_of(api, body, path) if chat is None else Question(chat.model, msgspec.json.encode(chat), "")
    if not path.endswith((_CHAT, _TEXT)):
        return None
    if path.endswith(_CHAT) and not is_text(body):
        return _part_of(Api.OPENAI_CHAT, body, path)
    try:
        asked = msgspec.json.decode(body, type=_Body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    names = ["add_special_tokens"]
    if path.endswith(_CHAT):
        names += ["messages", "chat_template_kwargs", "add_generation_prompt", "continue_final_message"]
        if bytes(asked.tool_choice) != b'"none"':
            names.append("tools")
        is_known = bool(bytes(asked.messages))
    else:
        names.append("prompt")
        is_known = bytes(asked.prompt).startswith(b'"')  # one text; tokens and lists of texts are asked for otherwise
    if not is_known:
        return None
    fields = {name: raw for name in names if bytes(raw := getattr(asked, name))}
    return Question(asked.model, msgspec.json.encode({"model": asked.model, **fields}), asked.cache_salt or "")


def _part_of(api: Api, body: bytes, path: str) -> Question | None:
    part = leading_chat(api, body, path)
    return None if part is None else Question(part.model, part.body, part.salt, part.prompt_bytes)


class PromptTokens:
    """The prompts that wait to be put into tokens. `run` has to run."""

    def __init__(self, upstream: Upstream, blocks: EngineBlocks, clock: Clock, metrics: Metrics) -> None:
        self._upstream, self._blocks, self._clock, self._metrics = upstream, blocks, clock, metrics
        self._waiting: deque[_Wanted] = deque()
        self._bytes = 0
        self._wake = asyncio.Event()
        self._refused: dict[int, Seconds] = {}
        """By slot: until when it is not asked."""
        self._unlike: dict[int, Seconds] = {}
        """The same of parts: it has made something else of one."""
        self._parts: deque[_Wanted] = deque()
        """Those that are not answered yet."""
        self._parts_known: dict[int, None] = {}
        """The last block of each part that was linked."""

    def want(self, sent: SentPrompt, body: bytes, path: str) -> None:
        """A prompt was sent there. Ask about it in time, unless it is known, or too much is asked already."""
        seen = sent.endpoint.observation
        if seen is not None and seen.block_tokens:
            self._blocks.expect(seen.block_tokens)
        if not self._is_useful(sent) or len(body) > BODY_BYTES_MAX:
            return
        question = ask_about(body, path)
        if question is None:
            self._metrics.count(KV_TOKENIZED, "unsupported")
        elif not question.part_bytes:
            self._queue(self._waiting, _Wanted(sent, question, self._clock.now()))
        elif self._is_worth_asking(wanted := _Wanted(sent, question, self._clock.now())):
            self._queue(self._parts, wanted)

    async def run(self) -> None:
        """Ask until cancelled, about a few at a time."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._work())
            group.create_task(self._await_answers())

    async def _await_answers(self) -> None:
        while True:
            await asyncio.sleep(PARTS_EVERY_S)
            self.look_after_parts()

    def look_after_parts(self) -> None:
        """Ask about the parts of prompts that have been answered."""
        for _ in range(len(self._parts)):
            wanted = self._parts.popleft()
            self._bytes -= len(wanted.question.body)
            if wanted.sent.is_answered:
                self._queue(self._waiting, wanted)
            elif self._clock.now() - wanted.at < PARTS_AFTER_S:
                self._queue(self._parts, wanted)

    def _queue(self, queue: deque[_Wanted], wanted: _Wanted) -> None:
        if len(queue) >= WAITING_MAX or self._bytes + len(wanted.question.body) > WAITING_BYTES_MAX:
            self._metrics.count(KV_TOKENIZED, "dropped")
            return
        queue.append(wanted)
        self._bytes += len(wanted.question.body)
        if queue is self._waiting:
            self._wake.set()

    def _is_worth_asking(self, wanted: _Wanted) -> bool:
        """Whether a part fills a block, is not known, and its engine has not just made something else of one."""
        if not wanted.question.part_bytes:
            return True
        blocks, until = wanted.blocks, self._unlike.get(wanted.sent.endpoint.slot, 0.0)
        return bool(blocks) and blocks[-1] not in self._parts_known and self._clock.now() >= until

    async def _work(self) -> None:
        while True:
            while not self._waiting:
                self._wake.clear()
                await self._wake.wait()
            wanted = self._waiting.popleft()
            self._bytes -= len(wanted.question.body)
            if self._is_useful(wanted.sent) and self._is_worth_asking(wanted):
                outcome = await self._ask(wanted)
                self._metrics.count(KV_TOKENIZED, outcome)

    def _is_useful(self, sent: SentPrompt) -> bool:
        feed, slot = sent.endpoint.spec.cache_feed, sent.endpoint.slot
        if feed is None or not feed.tokenize or self._clock.now() < self._refused.get(slot, 0.0):
            return False
        return not self._blocks.is_linked(sent.blocks[-1])

    async def _ask(self, wanted: _Wanted) -> str:
        sent, question = wanted.sent, wanted.question
        try:
            page = await post(self._upstream, sent.endpoint.spec, PATH, question.body, LIMITS)
        except FETCH_FAULTS as error:
            _log.debug("tokenizing: %s", error)
            return "failed"
        tokens = _read(page.body) if page.status == _OK else None
        if question.part_bytes:
            return self._tie_part(wanted, tokens)
        if tokens is None:
            self._refused[sent.endpoint.slot] = self._clock.now() + REFUSED_S
            return "refused"
        self._blocks.link(_linked(wanted, tokens))
        if sent.is_answered:
            self._blocks.settle(sent.endpoint.slot, sent.blocks, sent.confirmed)
        return "linked"

    def _tie_part(self, wanted: _Wanted, tokens: Sequence[int] | None) -> str:
        """Link as much of a part as its engine is seen to hold."""
        slot = wanted.sent.endpoint.slot
        if tokens is None or not self._blocks.link(_linked(wanted, tokens), held_by=slot):
            self._unlike[slot] = self._clock.now() + REFUSED_S
            return "unlike"
        if len(self._parts_known) >= PARTS_KNOWN_MAX:
            del self._parts_known[next(iter(self._parts_known))]
        self._parts_known[wanted.blocks[-1]] = None
        return "linked"


def _linked(wanted: _Wanted, tokens: Sequence[int]) -> LinkedPrompt:
    sent, question = wanted.sent, wanted.question
    adapter = (question.model,) if _is_adapter(sent.endpoint, question.model) else ()
    salt = (question.salt,) if question.salt else ()
    prompt_bytes = question.part_bytes or sent.prompt_bytes
    return LinkedPrompt(wanted.blocks, prompt_bytes, tokens, encode_extra(*adapter), encode_extra(*adapter, *salt))


def _is_adapter(endpoint: Endpoint, model: str) -> bool:
    return model in endpoint.adapters


def _read(body: bytes) -> Sequence[int] | None:
    try:
        return array("I", msgspec.json.decode(body, type=_Tokens).tokens)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError, TypeError):
        return None

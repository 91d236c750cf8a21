import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from kinference.core.fleet import CacheFeed
from kinference.core.flight import SentPrompt
from kinference.core.prefix.engine_blocks import BlocksStored, EngineBlocks
from kinference.core.prefix.hashing import BLOCK_BYTES
from kinference.core.prefix.index import PrefixIndex
from kinference.errors import UpstreamUnreachable
from kinference.fleet.kv_batch import encode_extra
from kinference.fleet.tokenize import (
    BODY_BYTES_MAX,
    PARTS_AFTER_S,
    REFUSED_S,
    WAITING_BYTES_MAX,
    WAITING_MAX,
    PromptTokens,
    ask_about,
)
from kinference.observe.metrics import Metrics
from tests.unit.fleet.fakes import HERE, FakeAnswer, FakeUpstream, ManualClock, Page, fleet_of, only, spec

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
URL = f"http://{HERE}/tokenize"
TOKENS = list(range(128))
BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}'
FEED = CacheFeed(5557)


def asked(body: object, path: str = CHAT) -> object:
    question = ask_about(json.dumps(body).encode(), path)
    return json.loads(question.body) if question is not None else None


def test_a_chat_is_asked_about_with_all_that_its_template_renders() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function"}],
        "chat_template_kwargs": {"thinking": False},
        "add_generation_prompt": False,
        "continue_final_message": True,
    }
    assert asked(body | {"stream": True, "temperature": 1, "prompt": "no"}) == body


def test_a_text_is_asked_about_as_it_stands() -> None:
    assert asked({"model": "m", "prompt": "once", "messages": []}, TEXT) == {"model": "m", "prompt": "once"}


def test_tools_that_may_not_be_called_are_not_rendered() -> None:
    assert asked({"model": "m", "messages": [1], "tools": [2], "tool_choice": "none"}) == {
        "model": "m",
        "messages": [1],
    }


def test_plain_bodies_of_other_apis_are_asked_about_as_the_chat_that_they_are() -> None:
    hi = [{"role": "user", "content": "hi"}]
    assert asked({"model": "m", "max_tokens": 5, "messages": hi}, "/v1/messages") == {"model": "m", "messages": hi}
    assert asked({"model": "m", "input": "hi"}, "/v1/responses") == {"model": "m", "messages": hi}


def test_the_salt_is_kept_apart() -> None:
    question = ask_about(b'{"model":"m","prompt":"x","cache_salt":"s"}', TEXT)
    assert question is not None
    assert (question.salt, b"salt" in question.body) == ("s", False)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (BODY, "/v1/responses"),
        (BODY, ""),
        (b'{"model":"m"}', CHAT),
        (b'{"model":"m","prompt":[1,2]}', TEXT),
        (b'{"model":"m","prompt":["a","b"]}', TEXT),
        (b'{"model":"m","messages":[{"content":[{"type":"image_url"}]}]}', CHAT),
        (b"not json", CHAT),
        (b'{"model":7,"messages":[]}', CHAT),
    ],
)
def test_what_the_engine_would_put_together_in_another_way_is_not_asked_about(body: bytes, path: str) -> None:
    assert ask_about(body, path) is None


class Asking:
    """One endpoint that has told of a block, so that there is something to link to."""

    def __init__(self, page: Page, feed: CacheFeed | None = FEED) -> None:
        self.clock, self.metrics, self.index = ManualClock(), Metrics(), PrefixIndex()
        self.blocks = EngineBlocks(self.index)
        self.upstream = FakeUpstream({URL: page})
        self.fleet = fleet_of(replace(spec(), cache_feed=feed))
        self.tokens = PromptTokens(self.upstream, self.blocks, self.clock, self.metrics)
        self.store(b"")

    def store(self, extra: bytes) -> None:
        self.blocks.apply(0, 0, BlocksStored((hash(extra),), None, TOKENS, len(TOKENS), (extra,)))

    def want(self, *blocks: int, body: bytes = BODY, path: str = CHAT) -> None:
        self.tokens.want(SentPrompt(only(self.fleet), blocks, BLOCK_BYTES * len(blocks)), body, path)

    def count(self, outcome: str) -> int:
        line = f'kinference_kv_prompts_total{{outcome="{outcome}"}} '
        return next(
            (
                int(float(one[len(line) :]))
                for one in self.metrics.exposition().decode().split("\n")
                if one.startswith(line)
            ),
            0,
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110 - counters have no event to wait for
                await asyncio.sleep(0)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.tokens.run())
        yield
        task.cancel()


def answer(tokens: object = TOKENS, status: int = 200) -> FakeAnswer:
    return FakeAnswer(status, json.dumps({"count": 1, "tokens": tokens, "token_strs": None}).encode())


async def test_the_engine_that_was_sent_a_prompt_is_asked_and_the_prompt_is_linked() -> None:
    asking = Asking(answer())
    async with asking.running():
        asking.want(11)
        await asking.until(lambda: asking.count("linked") == 1)
    assert asking.index.match([11], 1) == {0: 1}
    (request,) = asking.upstream.requests
    assert (request.method, request.target, json.loads(b"".join(request.body))["model"]) == ("POST", "/tokenize", "m")


async def test_what_is_not_there_when_the_prompt_has_been_answered_is_believed_no_longer() -> None:
    asking = Asking(answer())
    asking.blocks.begin(0, 0)
    asking.store(b"other")
    asking.index.insert(0, [11])
    sent = SentPrompt(only(asking.fleet), [11], BLOCK_BYTES)
    async with asking.running():
        asking.tokens.want(sent, BODY, CHAT)
        sent.is_answered = True
        await asking.until(lambda: asking.count("linked") == 1)
    assert asking.index.held(0) == 0


def chat_with_a_picture(said: str = "hi") -> bytes:
    picture = {"type": "image_url", "image_url": {"url": "http://x/y.png"}}
    turns = [{"role": "system", "content": said * 400}, {"role": "user", "content": [picture]}]
    return json.dumps({"model": "m", "messages": turns}).encode()


async def test_of_a_prompt_that_is_not_all_text_the_leading_part_is_linked_as_far_as_its_engine_holds_it() -> None:
    asking = Asking(answer([*TOKENS, *TOKENS]))
    sent = SentPrompt(only(asking.fleet), [11, 12, 13], 3 * BLOCK_BYTES)
    async with asking.running():
        asking.tokens.want(sent, chat_with_a_picture(), CHAT)
        asking.tokens.look_after_parts()
        assert asking.upstream.requests == [], "its engine may not have computed it yet"
        sent.is_answered = True
        asking.tokens.look_after_parts()
        await asking.until(lambda: asking.count("linked") == 1)
        asking.tokens.want(sent, chat_with_a_picture(), CHAT)
        asking.tokens.look_after_parts()
        await asyncio.sleep(0)
    (request,) = asking.upstream.requests
    question = json.loads(b"".join(request.body))
    assert [turn["role"] for turn in question["messages"]] == ["system"]
    assert question["add_generation_prompt"] is False
    assert asking.index.match([11], 1) == {0: 1}, "the engine holds its first 128 tokens"
    assert asking.blocks.is_linked(11)
    assert not asking.blocks.is_linked(13), "the picture's"


@pytest.mark.parametrize("page", [answer(list(range(500, 628))), FakeAnswer(400)])
async def test_an_engine_that_made_something_else_of_a_part_is_not_asked_about_parts_for_a_while(
    page: FakeAnswer,
) -> None:
    asking = Asking(page)
    sent = SentPrompt(only(asking.fleet), [11, 12, 13], 3 * BLOCK_BYTES, is_answered=True)
    async with asking.running():
        for _ in range(2):
            asking.tokens.want(sent, chat_with_a_picture(), CHAT)
            asking.tokens.look_after_parts()
            await asking.until(lambda: asking.count("unlike") == 1)
        assert not asking.blocks.is_linked(11)
        asking.upstream.pages[URL] = answer()
        asking.want(21)
        await asking.until(lambda: asking.count("linked") == 1)
        asking.clock.time += REFUSED_S
        asking.tokens.want(sent, chat_with_a_picture(), CHAT)
        asking.tokens.look_after_parts()
        await asking.until(lambda: asking.count("linked") == 2)


async def test_who_is_never_answered_is_not_asked_about_and_a_part_of_no_block_neither() -> None:
    asking = Asking(answer())
    sent = SentPrompt(only(asking.fleet), [11, 12], 2 * BLOCK_BYTES)
    asking.tokens.want(sent, chat_with_a_picture(), CHAT)
    asking.tokens.want(SentPrompt(only(asking.fleet), [21], BLOCK_BYTES), chat_with_a_picture(""), CHAT)
    asking.clock.time += PARTS_AFTER_S
    asking.tokens.look_after_parts()
    sent.is_answered = True
    asking.tokens.look_after_parts()
    async with asking.running():
        await asyncio.sleep(0)
    assert asking.upstream.requests == []


async def test_a_prompt_that_is_known_is_not_asked_about_again() -> None:
    asking = Asking(answer())
    async with asking.running():
        asking.want(11)
        await asking.until(lambda: asking.count("linked") == 1)
        asking.want(11)
    assert len(asking.upstream.requests) == 1


async def test_adapters_and_salts_set_a_prompt_apart() -> None:
    asking = Asking(answer())
    asking.fleet.set_models(only(asking.fleet).spec.pool, only(asking.fleet).spec.address, ["m"], adapters=["m"])
    asking.store(encode_extra("m", "s"))
    async with asking.running():
        asking.want(11, body=b'{"model":"m","messages":[1],"cache_salt":"s"}')
        await asking.until(lambda: asking.count("linked") == 1)
    asking.blocks.begin(0, 0)
    asking.store(b"")
    assert asking.index.match([11], 1) == {}
    asking.store(encode_extra("m", "s"))
    assert asking.index.match([11], 1) == {0: 1}


@pytest.mark.parametrize(
    "page", [FakeAnswer(404), answer(status=500), answer([-1]), answer("text"), FakeAnswer(200, b"no json")]
)
async def test_an_engine_that_cannot_is_left_alone_for_a_while(page: FakeAnswer) -> None:
    asking = Asking(page)
    async with asking.running():
        asking.want(11)
        await asking.until(lambda: asking.count("refused") == 1)
        asking.want(12)
        asking.clock.time += REFUSED_S
        asking.upstream.pages[URL] = answer()
        asking.want(13)
        await asking.until(lambda: asking.count("linked") == 1)
    assert len(asking.upstream.requests) == 2


async def test_a_question_that_fails_is_let_go() -> None:
    asking = Asking(UpstreamUnreachable("gone"))
    async with asking.running():
        asking.want(11)
        asking.want(12)
        await asking.until(lambda: asking.count("failed") == 2)


async def test_what_is_too_much_is_left_out() -> None:
    asking = Asking(answer())
    asking.want(1, body=BODY + b" " * BODY_BYTES_MAX)
    for number in range(WAITING_MAX + 3):
        asking.want(number)
    assert asking.count("dropped") == 3
    heavy = Asking(answer())
    body = b'{"model":"m","prompt":"' + b"x" * (BODY_BYTES_MAX - 100) + b'"}'
    for number in range(WAITING_BYTES_MAX // BODY_BYTES_MAX + 5):
        heavy.want(number, body=body, path=TEXT)
    assert 0 < heavy.count("dropped") <= 5


@pytest.mark.parametrize("feed", [None, replace(FEED, tokenize=False)])
async def test_an_endpoint_that_is_not_to_be_asked_is_not(feed: CacheFeed | None) -> None:
    asking = Asking(answer(), feed)
    async with asking.running():
        asking.want(11)
        await asyncio.sleep(0)
    assert asking.upstream.requests == []


async def test_a_body_that_cannot_be_asked_about_is_counted() -> None:
    asking = Asking(answer())
    asking.want(11, path="/v1/embeddings")
    assert asking.count("unsupported") == 1

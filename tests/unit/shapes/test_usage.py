"""What an answer says it used."""

import json
from typing import Any

import pytest

from kinference.shapes.usage import TOKENS_MAX, Usage, UsageReader, read_usage
from kinference.vocabulary import Api


def answer(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


OPENAI = {"prompt_tokens": 11, "completion_tokens": 6, "total_tokens": 17}


@pytest.mark.parametrize(
    ("api", "text", "usage"),
    [
        (Api.OPENAI_CHAT, answer(model="m", usage=OPENAI), Usage(11, 6, None, "m")),
        (
            Api.OPENAI_CHAT,
            answer(model="m", usage=OPENAI | {"prompt_tokens_details": {"cached_tokens": 0}}),
            Usage(11, 6, 0, "m"),
        ),
        (Api.OPENAI_CHAT, answer(usage=OPENAI | {"prompt_tokens_details": None}), Usage(11, 6, None, None)),
        (Api.OPENAI_EMBEDDINGS, answer(model="e", usage={"prompt_tokens": 4}), Usage(4, None, None, "e")),
        (
            Api.OPENAI_RESPONSES,
            answer(
                model="r", usage={"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 8}}
            ),
            Usage(9, 2, 8, "r"),
        ),
        (
            Api.OPENAI_RESPONSES,
            answer(type="response.completed", response={"model": "r", "usage": {"input_tokens": 9}}),
            Usage(9, None, None, "r"),
        ),
        (
            Api.ANTHROPIC_MESSAGES,
            answer(model="a", usage={"input_tokens": 3, "cache_creation_input_tokens": 12304, "output_tokens": 5}),
            Usage(12307, 5, None, "a"),
        ),
        (
            Api.ANTHROPIC_MESSAGES,
            answer(usage={"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5}),
            Usage(100, 5, 90, None),
        ),
        (Api.OPENAI_CHAT, answer(usage={"prompt_tokens": 11.0, "completion_tokens": 10**30}), Usage(11, TOKENS_MAX)),
        (Api.OPENAI_CHAT, answer(usage={"prompt_tokens": -5}), Usage(0)),
        (Api.OPENAI_CHAT, answer(usage={"prompt_tokens": 9, "prompt_cache_hit_tokens": 8}), Usage(9, None, 8)),
        (Api.OPENAI_CHAT, answer(usage={"prompt_tokens": 9, "cached_tokens": 7}), Usage(9, None, 7)),
        (
            Api.OPENAI_CHAT,
            answer(
                usage={
                    "prompt_tokens": 9,
                    "completion_tokens": 1,
                    "total_tokens": 15,
                    "completion_tokens_details": {"reasoning_tokens": 5},
                }
            ),
            Usage(9, 6),
        ),
        (
            Api.GEMINI,
            answer(usageMetadata={"promptTokenCount": 9, "toolUsePromptTokenCount": 4, "candidatesTokenCount": 2}),
            Usage(13, 2),
        ),
        (Api.OPENAI_CHAT, rb'{"choices":["\ud83d"],"usage":{"prompt_tokens":1}}', Usage(1)),
    ],
)
def test_the_usage_of_a_whole_answer_is_read(api: Api, text: bytes, usage: Usage) -> None:
    assert read_usage(api, text) == usage


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"not json",
        b"[1]",
        answer(model="m"),
        answer(usage=None),
        answer(usage="much"),
        answer(usage={"prompt_tokens": "many"}),
        answer(message="no such model"),
        b"[" * 10_000,
    ],
)
def test_what_carries_no_usage_gives_none(text: bytes) -> None:
    assert read_usage(Api.OPENAI_CHAT, text) is None


def test_running_totals_are_never_summed() -> None:
    reader = UsageReader(Api.OPENAI_CHAT)
    for tokens in (10, 50, 100):
        assert reader.read(answer(usage={"completion_tokens": tokens}))
    assert reader.usage == Usage(completion_tokens=100)


def test_a_later_event_overrides_only_what_it_gives() -> None:
    reader = UsageReader(Api.ANTHROPIC_MESSAGES)
    start = {"input_tokens": 3, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 7, "output_tokens": 1}
    reader.read(answer(type="message_start", message={"model": "a", "usage": start}))
    reader.read(answer(type="message_delta", usage={"input_tokens": 4, "output_tokens": 0}))
    assert reader.usage == Usage(101, 0, 90, "a")


def test_nothing_read_is_no_usage() -> None:
    reader = UsageReader(Api.OPENAI_CHAT)
    assert not reader.read(b"{}")
    assert reader.usage is None

"""Which bodies of other APIs are a chat beyond doubt."""

import json

import pytest

from kinference.shapes.plain_chat import plain_chat
from kinference.vocabulary import Api

MESSAGES = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
RESPONSES = {"model": "m", "input": "hi"}
HI = {"role": "user", "content": "hi"}


def chat(api: Api, body: object) -> list[dict[str, str]] | None:
    found = plain_chat(api, json.dumps(body).encode())
    return None if found is None else found.messages


def test_anthropics_system_prompt_comes_first_and_one_part_is_its_text() -> None:
    turns = [
        HI,
        {"role": "assistant", "content": [{"type": "text", "text": "yes", "cache_control": {"type": "ephemeral"}}]},
    ]
    for system in ("be kind", [{"type": "text", "text": "be kind"}]):
        body = MESSAGES | {"system": system, "messages": turns, "stream": True, "temperature": 0.5, "top_k": 3}
        assert chat(Api.ANTHROPIC_MESSAGES, body) == [
            {"role": "system", "content": "be kind"},
            HI,
            {"role": "assistant", "content": "yes"},
        ]
    assert chat(Api.ANTHROPIC_MESSAGES, MESSAGES) == [HI]


def test_responses_instructions_come_first_and_a_text_is_the_users() -> None:
    assert chat(Api.OPENAI_RESPONSES, RESPONSES | {"store": False}) == [HI]
    items = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}]
    assert chat(Api.OPENAI_RESPONSES, RESPONSES | {"instructions": "be kind", "input": items}) == [
        {"role": "system", "content": "be kind"},
        HI,
    ]


@pytest.mark.parametrize(
    "more",
    [
        {"tools": []},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        {"cache_salt": "s"},
        {"system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"system": "x-anthropic-billing-header: cc_version=2; be kind"},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]},
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}]},
        {"messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "hi"}]},
        {"messages": []},
        {"messages": "hi"},
    ],
)
def test_what_engines_put_together_each_in_its_way_is_left_alone(more: dict[str, object]) -> None:
    assert chat(Api.ANTHROPIC_MESSAGES, MESSAGES | more) is None


@pytest.mark.parametrize(
    "more",
    [
        {"tools": []},
        {"previous_response_id": "resp_1"},
        {"reasoning": {"effort": "low"}},
        {"input": []},
        {"input": [{"type": "reasoning", "summary": []}]},
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
    ],
)
def test_responses_with_more_than_texts_are_left_alone(more: dict[str, object]) -> None:
    assert chat(Api.OPENAI_RESPONSES, RESPONSES | more) is None


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000, b'{"model": 7}'])
def test_what_is_no_body_is_no_chat(body: bytes) -> None:
    assert plain_chat(Api.ANTHROPIC_MESSAGES, body) is plain_chat(Api.OPENAI_RESPONSES, body) is None


def test_other_apis_have_no_need_of_it() -> None:
    assert plain_chat(Api.OPENAI_CHAT, json.dumps(MESSAGES).encode()) is None

from collections.abc import Callable

import msgspec
import pytest

from kinference.sim.asks import (
    EMBEDDING_INPUTS_MAX,
    Ask,
    Refused,
    parse_chat,
    parse_completion,
    parse_embeddings,
    parse_messages,
    parse_responses,
    parse_tokenize,
)
from kinference.sim.text import pad

TURN = [{"role": "user", "content": "hello"}]


def encode(**fields: object) -> bytes:
    return msgspec.json.encode(fields)


def test_a_chat_is_read_with_what_it_asks_for() -> None:
    ask = parse_chat(
        encode(model="m", messages=TURN, stream=True, stream_options={"include_usage": True}, max_tokens=7, n=2)
    )
    assert (ask.model, ask.stream, ask.include_usage, ask.output_tokens_max) == ("m", True, True, 7)


def test_the_newer_name_of_a_limit_wins() -> None:
    assert parse_chat(encode(messages=TURN, max_tokens=7, max_completion_tokens=3)).output_tokens_max == 3


def test_the_salt_and_the_end_are_the_callers_to_choose() -> None:
    ask = parse_completion(encode(prompt="abc", cache_salt="tenant", ignore_eos=True))
    assert (ask.salt, ask.ignore_eos, ask.prompts) == ("tenant", True, (pad("abc"),))


def test_nulls_are_as_good_as_nothing() -> None:
    ask = parse_chat(encode(model=None, messages=TURN, stream=None, stream_options=None, max_tokens=None))
    assert (ask.model, ask.stream, ask.output_tokens_max) == ("", False, None)


def test_the_system_prompt_of_messages_comes_before_the_turns() -> None:
    plain, parts = (
        parse_messages(encode(messages=TURN, max_tokens=5, system=system))
        for system in ("be brief", [{"type": "text", "text": "be brief"}])
    )
    assert plain.prompts == parts.prompts
    assert plain.prompts[0].startswith(b"be brief")


def test_responses_take_a_text_or_turns() -> None:
    text = parse_responses(encode(input="hello", max_output_tokens=4))
    turns = parse_responses(encode(input=TURN))
    assert text.prompts == turns.prompts
    assert text.output_tokens_max == 4
    assert parse_responses(encode(input="hello", instructions="be brief")).prompts[0].startswith(b"be brief")


def test_embeddings_take_many_texts_and_a_format() -> None:
    ask = parse_embeddings(encode(input=["a", "b"], encoding_format="base64", dimensions=8))
    assert (len(ask.prompts), ask.as_base64, ask.dimensions) == (2, True, 8)


def test_embeddings_have_a_largest_number_of_texts() -> None:
    with pytest.raises(Refused, match="at most"):
        parse_embeddings(encode(input=["a"] * (EMBEDDING_INPUTS_MAX + 1)))


def test_half_an_emoji_is_taken_as_python_takes_it() -> None:
    assert parse_chat(rb'{"model":"m","messages":[{"role":"user","content":"a\ud83d"}]}').prompts


def test_tokenize_takes_a_prompt_or_messages() -> None:
    assert parse_tokenize(encode(prompt="abc")).prompts == (pad("abc"),)
    assert parse_tokenize(encode(messages=TURN)).prompts == parse_chat(encode(messages=TURN)).prompts


@pytest.mark.parametrize(
    ("parse", "raw"),
    [
        (parse_chat, b""),
        (parse_chat, b"{"),
        (parse_chat, b"[]"),
        (parse_chat, b"{}"),
        (parse_chat, b'{"messages": "hello"}'),
        (parse_chat, b'{"messages": [], "model": 5}'),
        (parse_chat, b'{"messages": [], "max_tokens": 0}'),
        (parse_chat, b'{"messages": [' + b"[" * 100_000),
        (parse_chat, b'{"messages": [{"role": "\xff"}]}'),
        (parse_completion, b'{"prompt": ""}'),
        (parse_completion, b'{"prompt": ["a", "b"]}'),
        (parse_embeddings, b'{"input": []}'),
        (parse_tokenize, b"{}"),
    ],
)
def test_what_cannot_be_served_is_a_bad_request(parse: Callable[[bytes], Ask], raw: bytes) -> None:
    with pytest.raises(Refused) as refused:
        parse(raw)
    assert (refused.value.status, refused.value.kind) == (400, "BadRequestError")


@pytest.mark.parametrize(
    ("status", "kind"), [(404, "NotFoundError"), (500, "InternalServerError"), (429, "TooManyRequestsError")]
)
def test_a_status_has_a_name(status: int, kind: str) -> None:
    assert Refused(status, "").kind == kind


def test_a_status_that_nobody_has_named_has_one_too() -> None:
    assert Refused(599, "").kind == "UnknownError"

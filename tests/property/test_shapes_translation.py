"""What holds for every conversation and every stream that is translated."""

import json
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinference.shapes.answers import (
    ArgumentsPiece,
    Counted,
    Counts,
    Finish,
    Finished,
    Frame,
    NoAnswer,
    Piece,
    ReasoningEnd,
    ReasoningPiece,
    RefusalPiece,
    Started,
    TextPiece,
    ToolBegun,
)
from kinference.shapes.scan import BadBody
from kinference.shapes.sse import Event
from kinference.shapes.translate import CLIENTS, DESTINATIONS, Way, emit, plan
from kinference.shapes.way_back import StreamTranslation, read_answer, write_answer
from kinference.vocabulary import Api

TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("f", "g.h")]
CONVERSING = [client for client in CLIENTS if client is not Api.OPENAI_EMBEDDINGS]
PAIRS = [(client, destination) for client in CONVERSING for destination in DESTINATIONS]
BODIES = {
    Api.OPENAI_CHAT: b'{"model":"m","messages":[{"role":"user","content":"hi"}]}',
    Api.OPENAI_RESPONSES: b'{"model":"m","input":"hi"}',
    Api.OPENAI_COMPLETIONS: b'{"model":"m","prompt":"hi"}',
    Api.ANTHROPIC_MESSAGES: b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}',
    Api.GEMINI: b'{"contents":[{"parts":[{"text":"hi"}]}]}',
}

ANSWERS = "choices message delta content output candidates usage type item index error finish_reason tool_calls function parts"
EVENTS = (
    "choices candidates delta index output_index contentBlockIndex item error message content_block response start "
    "usage stopReason"
)
TYPES = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
    "response.created",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.function_call_arguments.delta",
    "response.completed",
    "response.failed",
    "messageStart",
    "contentBlockStart",
    "contentBlockDelta",
    "contentBlockStop",
    "messageStop",
    "metadata",
    "throttlingException",
]

PIECES: list[Piece] = [
    TextPiece("a"),
    ReasoningPiece("b"),
    RefusalPiece("c"),
    ReasoningEnd("s", Api.ANTHROPIC_MESSAGES),
    ToolBegun(0, "c0", "f"),
    ArgumentsPiece(0, '{"x"'),
    ArgumentsPiece(0, ":1}"),
    ToolBegun(1, "c1", "f"),
    ArgumentsPiece(1, "{}"),
    Counted(Counts(1, 2)),
    Finished(Finish.STOP),
]

texts = st.text(max_size=12)
words = st.text(st.characters(categories=["L", "N", "Zs", "So"]), min_size=1, max_size=12).filter(str.strip)
"""Of white space alone they are nothing to those who refuse them, and a turn of nothing else is none."""
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
arguments = st.dictionaries(texts, values, max_size=3).map(json.dumps)


def some_of(names: str, inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with members that mean something somewhere."""
    return st.dictionaries(st.sampled_from(names.split()), inner, max_size=4)


@st.composite
def turns(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """Whole exchanges of a chat: what a user says, and what comes of it."""
    exchanges = []
    for turn in range(draw(st.integers(1, 4))):
        exchange: list[dict[str, Any]] = [{"role": "user", "content": draw(words)}]
        if draw(st.booleans()):
            exchange.insert(0, {"role": "system", "content": draw(words)})
        calls = draw(st.lists(st.tuples(st.sampled_from(["f", "g.h"]), arguments), max_size=2))
        if calls:
            made = [
                {"id": f"call_{turn}_{at}", "type": "function", "function": {"name": name, "arguments": given}}
                for at, (name, given) in enumerate(calls)
            ]
            exchange.append({"role": "assistant", "content": draw(st.none() | words), "tool_calls": made})
            exchange += ({"role": "tool", "tool_call_id": call["id"], "content": draw(texts)} for call in made)
        exchange.append({"role": "assistant", "content": draw(words)})
        exchanges.append(exchange)
    return exchanges


def body_of(messages: Sequence[dict[str, Any]]) -> bytes:
    return json.dumps({"model": "m", "messages": messages, "tools": TOOLS, "max_tokens": 99}).encode()


def chat(exchanges: Sequence[Sequence[dict[str, Any]]], question: str = "and?") -> bytes:
    messages = [*(message for exchange in exchanges for message in exchange), {"role": "user", "content": question}]
    return body_of(messages)


def written(body: bytes, client: Api, destination: Api, model: str = "m") -> bytes:
    return emit(plan(body, Way(client, destination, model)))


@pytest.mark.parametrize("model", ["m", "anthropic.claude-opus-5", "meta.llama3-1-70b-instruct-v1:0"])
@pytest.mark.parametrize("destination", DESTINATIONS)
@given(exchanges=turns())
def test_the_body_of_a_turn_is_the_beginning_of_the_next_ones(
    destination: Api, model: str, exchanges: list[list[dict[str, Any]]]
) -> None:
    """Up to the brackets that close it: so every provider's prefix cache goes on serving."""
    messages = [message for exchange in exchanges for message in exchange]
    asked = [at for at, message in enumerate(messages) if message["role"] == "user"]
    bodies = [written(body_of(messages[: at + 1]), Api.OPENAI_CHAT, destination, model) for at in asked]
    for body, following in pairwise(bodies):
        assert following.startswith(body.rstrip(b'"]}'))


def conversation(body: bytes) -> list[Any]:
    """What a chat says, without what differs in spelling alone."""
    said: list[Any] = []
    for message in json.loads(body)["messages"]:
        content = message.get("content") or ""
        text = content if isinstance(content, str) else "".join(part["text"] for part in content)
        calls = [
            (call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in message.get("tool_calls", ())
        ]
        said.append((message["role"], text, calls))
    return said


@pytest.mark.parametrize("between", [Api.ANTHROPIC_MESSAGES, Api.OPENAI_RESPONSES])
@given(exchanges=turns())
def test_a_chat_comes_back_from_another_api_as_it_went(between: Api, exchanges: list[list[dict[str, Any]]]) -> None:
    """System text within a conversation and names with signs become something else, which the tables say."""
    plain = [[message for message in exchange if message["role"] != "system"] for exchange in exchanges]
    body = chat(plain).replace(b"g.h", b"g_h")
    there = written(body, Api.OPENAI_CHAT, between)
    assert conversation(written(there, between, Api.OPENAI_CHAT)) == conversation(body)


@settings(max_examples=200)
@given(
    st.sampled_from(list(CLIENTS)),
    st.dictionaries(
        st.sampled_from(["messages", "input", "contents", "prompt", "tools", "system", "tool_choice", "stop", "x"]),
        st.recursive(
            values,
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        ["role", "content", "type", "text", "parts", "function", "name", "source", "data", "id"]
                    ),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=12,
        ),
        max_size=5,
    ),
)
def test_any_json_is_translated_or_refused(client: Api, body: dict[str, Any]) -> None:
    raw = json.dumps(body).encode()
    for destination in DESTINATIONS:
        with suppress(BadBody):
            json.loads(written(raw, client, destination))


@settings(max_examples=200)
@given(
    st.sampled_from(PAIRS), st.recursive(values, lambda inner: some_of(ANSWERS, inner) | st.lists(inner), max_leaves=12)
)
def test_any_answer_is_written_or_is_none(pair: tuple[Api, Api], answer: Any) -> None:
    client, destination = pair
    back = plan(BODIES[client], Way(client, destination, "m")).back
    with suppress(NoAnswer):
        json.loads(write_answer(back, read_answer(back, json.dumps(answer).encode()), Frame("r", 1)))


@settings(max_examples=300)
@given(st.sampled_from(PAIRS), st.lists(st.tuples(st.sampled_from(TYPES), some_of(EVENTS, values)), max_size=5))
def test_any_event_is_taken(pair: tuple[Api, Api], events: list[tuple[str, dict[str, Any]]]) -> None:
    client, destination = pair
    back = plan(BODIES[client], Way(client, destination, "m")).back
    translation = StreamTranslation(back, Frame("r", 1))
    for name, members in events:
        translation.feed(Event(name, json.dumps({"type": name, **members}).encode(), b""))
    translation.close()


TEXT_EVENTS: dict[Api, Any] = {
    Api.OPENAI_CHAT: lambda text, more: {"id": "c", "choices": [{"index": 0, "delta": {"content": text, **more}}]},
    Api.ANTHROPIC_MESSAGES: lambda text, more: {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": text, **more},
    },
    Api.OPENAI_RESPONSES: lambda text, more: {"type": "response.output_text.delta", "delta": text, **more},
    Api.GEMINI: lambda text, more: {
        "candidates": [{"content": {"parts": [{"text": text, **more}]}}],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4},
    },
    Api.BEDROCK_CONVERSE: lambda text, more: {"contentBlockIndex": 0, "delta": {"text": text, **more}},
}


@pytest.mark.parametrize("destination", DESTINATIONS)
@given(text=texts, more=some_of("tool_calls thought reasoning refusal output_index logprobs", values), data=st.data())
def test_a_text_read_sooner_is_the_text_that_is_read(
    destination: Api, text: str, more: dict[str, Any], data: st.DataObject
) -> None:
    outer = data.draw(some_of("usage error finish_reason promptFeedback stop", values))
    body = json.dumps({**TEXT_EVENTS[destination](text, more), **outer}, separators=(",", ":")).encode()
    event = Event("contentBlockDelta", body, b"")
    sooner, later = DESTINATIONS[destination].stream(), DESTINATIONS[destination].stream()
    first = Event("messageStart", json.dumps(TEXT_EVENTS[destination]("", {})).encode(), b"")
    sooner.feed(first)
    later.feed(first)
    found = sooner.text_of(event)
    pieces = later.feed(event)
    if found:
        told = [piece for piece in pieces if not isinstance(piece, Counted)]
        assert told == [TextPiece(found)]
        if destination is Api.GEMINI:
            assert pieces[-1:] == [Counted(sooner.counts())]
    else:
        assert pieces != [TextPiece(text)] or more or outer


@pytest.mark.parametrize("client", CONVERSING)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=6), said=st.lists(texts.filter(bool), min_size=1, max_size=3))
def test_a_text_written_sooner_is_the_text_that_is_written(client: Api, pieces: list[Piece], said: list[str]) -> None:
    frame = Frame("r", 1)
    sooner, later = CLIENTS[client].stream(frame), CLIENTS[client].stream(frame)
    for piece in (Started("i", "m"), *pieces):
        assert sooner.feed(piece) == later.feed(piece)
    for text in said:
        assert sooner.text(text) == later.feed(TextPiece(text))
    assert sooner.finish() == later.finish()

import json
from typing import Any

import pytest

from kinference.shapes.answers import (
    ArgumentsPiece,
    Counted,
    Counts,
    Failed,
    Finish,
    Finished,
    Piece,
    ReasoningEnd,
    ReasoningPiece,
    Started,
    TextPiece,
    ToolBegun,
)
from kinference.shapes.anthropic_messages.parse_stream import MessagesStreamParser
from kinference.shapes.sse import Event
from kinference.vocabulary import Api


def parsed(*events: Any) -> list[Piece]:
    parser = MessagesStreamParser()
    return [piece for event in events for piece in parser.feed(Event("", json.dumps(event).encode(), b""))]


def start(index: int, **block: Any) -> Any:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, **members: Any) -> Any:
    return {"type": "content_block_delta", "index": index, "delta": members}


def test_a_whole_stream() -> None:
    usage = {"input_tokens": 3, "output_tokens": 1}
    assert parsed(
        {"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": usage}},
        {"type": "ping"},
        start(0, type="text", text=""),
        delta(0, type="text_delta", text="a"),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
        {"type": "something_new"},
    ) == [
        Started("msg_1", "m", Counts(3, 1)),
        TextPiece("a"),
        Counted(Counts(3, 9)),
        Finished(Finish.LENGTH),
    ]


def test_interleaved_calls_are_told_apart_by_their_blocks() -> None:
    assert parsed(
        start(1, type="tool_use", id="a", name="f", input={}),
        start(2, type="tool_use", id="b", name="g", input={"x": 1}),
        delta(1, type="input_json_delta", partial_json="{}"),
        delta(7, type="input_json_delta", partial_json="{}"),
    ) == [ToolBegun(0, "a", "f"), ToolBegun(1, "b", "g"), ArgumentsPiece(1, '{"x":1}'), ArgumentsPiece(0, "{}")]


@pytest.mark.parametrize(("signature", "issuer"), [("s", Api.ANTHROPIC_MESSAGES), ("", None)])
def test_a_thought_ends_with_its_signature(signature: str, issuer: Api | None) -> None:
    assert parsed(
        start(0, type="thinking", thinking="", signature=""),
        delta(0, type="thinking_delta", thinking="r"),
        delta(0, type="signature_delta", signature=signature),
        {"type": "content_block_stop", "index": 0},
    ) == [ReasoningPiece("r"), ReasoningEnd(signature, issuer)]


def test_an_error_is_told() -> None:
    assert parsed({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}) == [
        Failed("busy", "overloaded_error", 529)
    ]


@pytest.mark.parametrize(
    "event", [{}, 7, None, {"type": "content_block_delta"}, {"type": "message_start", "message": 1}]
)
def test_what_makes_no_sense_is_passed_over(event: Any) -> None:
    assert [piece for piece in parsed(event) if not isinstance(piece, Started)] == []


def test_half_an_event_is_passed_over_and_only_its_own_end_ends_it() -> None:
    parser = MessagesStreamParser()
    assert parser.feed(Event("", b'{"type":', b"")) == []
    assert (parser.close(), parser.is_complete, parser.is_over) == ([], False, False)


@pytest.mark.parametrize("later", [{"input_tokens": 10}, {"cache_read_input_tokens": 20}, {"input_tokens": None}])
def test_what_an_event_tells_of_the_prompt_is_not_all_of_it(later: Any) -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 20, "output_tokens": 1}
    pieces = parsed(
        {"type": "message_start", "message": {"usage": usage}},
        {"type": "message_delta", "delta": {}, "usage": later | {"output_tokens": 9}},
    )
    assert pieces[-1] == Counted(Counts(30, 9, 20))

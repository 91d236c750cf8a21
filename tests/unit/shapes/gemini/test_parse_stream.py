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
    ReasoningPiece,
    Started,
    TextPiece,
    ToolBegun,
)
from kinference.shapes.gemini.parse_stream import GeminiStreamParser
from kinference.shapes.ir import Unread
from kinference.shapes.openai_chat.answer import call_id
from kinference.shapes.sse import Event
from tests.unit.shapes.conversions import CHAT, GEMINI, Stream
from tests.unit.shapes.conversions import data as stream_of

CALL = {"functionCall": {"name": "f", "args": {}}}


def of(*parts: Any, reason: str | None = None, **members: Any) -> Any:
    candidate: Any = {"content": {"parts": list(parts)}} if parts else {}
    return {"candidates": [candidate | ({"finishReason": reason} if reason else {})], "responseId": "x", **members}


def parsed(*events: Any) -> list[Piece]:
    parser = GeminiStreamParser()
    pieces = [piece for event in events for piece in parser.feed(Event("", json.dumps(event).encode(), b""))]
    return [*pieces, *parser.close()]


def test_a_whole_stream() -> None:
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 2}
    assert parsed(
        of({"text": "r", "thought": True}, modelVersion="m"), of({"text": "a"}), of(reason="STOP", usageMetadata=usage)
    ) == [Started("x", "m"), ReasoningPiece("r"), TextPiece("a"), Counted(Counts(9, 2)), Finished(Finish.STOP)]


@pytest.mark.parametrize(
    ("reason", "finish"), [("STOP", Finish.TOOLS), ("MAX_TOKENS", Finish.LENGTH), ("SAFETY", Finish.REFUSAL)]
)
def test_c3_a_call_long_before_the_end_still_counts(reason: str, finish: Finish) -> None:
    assert parsed(of(CALL), of(CALL), of({"text": ""}, reason=reason))[1:] == [
        ToolBegun(0, call_id("x", 0), "f"),
        ArgumentsPiece(0, "{}"),
        ToolBegun(1, call_id("x", 1), "f"),
        ArgumentsPiece(1, "{}"),
        Finished(finish),
    ]


def test_c4_of_several_reasons_the_last_counts() -> None:
    finishes = [piece for piece in parsed(of(reason="STOP"), of(reason="MAX_TOKENS")) if isinstance(piece, Finished)]
    assert finishes == [Finished(Finish.LENGTH)]


def test_a_blocked_prompt_is_a_refusal() -> None:
    assert parsed({"promptFeedback": {"blockReason": "SAFETY"}})[-1] == Finished(Finish.REFUSAL)


def test_an_end_without_a_reason_is_none() -> None:
    assert parsed(of({"text": "a"}, reason="FINISH_REASON_UNSPECIFIED"))[1:] == [TextPiece("a")]


def test_an_error_is_told() -> None:
    assert parsed({"error": {"code": 503, "message": "busy"}}) == [Failed("busy", "", 503)]


@pytest.mark.parametrize("event", [{}, 7, [], {"candidates": 7}])
def test_what_makes_no_sense_is_passed_over(event: Any) -> None:
    assert [piece for piece in parsed(event) if not isinstance(piece, Started)] == []
    assert GeminiStreamParser().feed(Event("", b"{", b"")) == []


def test_an_error_in_a_list_is_one() -> None:
    stream = Stream(CHAT, GEMINI).feed(
        stream_of([{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}])
    )
    assert stream.events[-1]["error"]["message"] == "busy"
    assert stream.translation.is_failed


def test_a_candidate_that_nobody_asked_for_is_not_mixed_in() -> None:
    one = {"content": {"parts": [{"text": "a"}]}}
    other = {"index": 1, "content": {"parts": [{"text": "X"}]}}
    body = stream_of({"candidates": [one, other]}, {"candidates": [other]}, {"candidates": [{"finishReason": "STOP"}]})
    stream = Stream(CHAT, GEMINI).feed(body).end()
    assert [event["choices"][0]["delta"].get("content") for event in stream.events[1:3]] == ["a", None]


def test_a_signature_beside_a_call_is_told() -> None:
    signed = of({"text": "a", "thoughtSignature": "s"})
    assert GeminiStreamParser().text_of(Event("", json.dumps(signed).encode(), b"")) == ""
    assert [piece for piece in parsed(signed) if isinstance(piece, TextPiece | Unread)] == [
        TextPiece("a"),
        Unread("thoughtSignature"),
    ]

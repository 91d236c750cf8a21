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
    RefusalPiece,
    Started,
    TextPiece,
    ToolBegun,
)
from kinference.shapes.ir import Sealed
from kinference.shapes.openai_responses.parse_stream import ResponsesStreamParser
from kinference.shapes.sse import Event
from kinference.vocabulary import Api


def parsed(*events: Any) -> list[Piece]:
    parser = ResponsesStreamParser()
    return [piece for event in events for piece in parser.feed(Event("", json.dumps(event).encode(), b""))]


def of(kind: str, index: int = 0, **members: Any) -> Any:
    return {"type": f"response.{kind}", "output_index": index, **members}


CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}
THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "r"}]}
MESSAGE = {"type": "message", "content": [{"type": "output_text", "text": "a"}]}


def test_a_whole_stream() -> None:
    response = {"id": "resp_1", "model": "m", "status": "completed", "usage": {"input_tokens": 9, "output_tokens": 2}}
    assert parsed(
        of("created", response=response),
        of("in_progress", response=response),
        of("output_item.added", item=THOUGHT),
        of("reasoning_summary_text.delta", delta="r"),
        of("output_item.done", item=THOUGHT),
        of("output_item.added", 1, item=MESSAGE),
        of("output_text.delta", 1, delta="a"),
        of("output_text.done", 1, text="a"),
        of("output_item.done", 1, item=MESSAGE),
        of("output_item.added", 2, item=CALL),
        of("function_call_arguments.delta", 2, delta="{}"),
        of("function_call_arguments.done", 2, arguments="{}"),
        of("output_item.done", 2, item=CALL | {"arguments": "{}"}),
        of("refusal.delta", 3, delta="n"),
        of("completed", response=response),
    ) == [
        Started("resp_1", "m"),
        ReasoningPiece("r"),
        ReasoningEnd(),
        TextPiece("a"),
        ToolBegun(0, "c", "f"),
        ArgumentsPiece(0, "{}"),
        RefusalPiece("n"),
        Counted(Counts(9, 2)),
        Finished(Finish.TOOLS),
    ]


def test_d4_items_that_come_only_whole_are_taken_whole() -> None:
    refusal = {"type": "message", "content": [{"type": "refusal", "refusal": "n"}]}
    assert parsed(
        of("output_item.done", 0, item=THOUGHT),
        of("output_item.done", 1, item=MESSAGE),
        of("output_item.done", 2, item=CALL | {"arguments": "{}"}),
        of("output_item.done", 3, item=refusal),
        of("completed", response={"status": "completed", "output": []}),
    ) == [
        ReasoningPiece("r"),
        ReasoningEnd(),
        TextPiece("a"),
        ToolBegun(0, "c", "f"),
        ArgumentsPiece(0, "{}"),
        RefusalPiece("n"),
        Finished(Finish.TOOLS),
    ]


def test_d4_what_was_told_in_part_is_completed_by_what_tells_the_whole() -> None:
    assert parsed(
        of("reasoning_summary_text.delta", delta="r"),
        of("reasoning_summary_text.done", text="rs"),
        of("output_text.delta", 1, content_index=0, delta="a"),
        of("output_text.done", 1, content_index=0, text="ab"),
        of("refusal.done", 1, content_index=1, refusal="n"),
        of("output_item.added", 2, item=CALL),
        of("function_call_arguments.done", 2, arguments='{"a":1}'),
        of("output_item.done", 2, item=CALL | {"arguments": '{"a":1}'}),
    ) == [
        ReasoningPiece("r"),
        ReasoningPiece("s"),
        TextPiece("a"),
        TextPiece("b"),
        RefusalPiece("n"),
        ToolBegun(0, "c", "f"),
        ArgumentsPiece(0, '{"a":1}'),
    ]


def test_d4_an_answer_that_comes_only_with_its_end_is_taken_from_there() -> None:
    output = [THOUGHT, MESSAGE, CALL | {"arguments": "{}"}]
    assert parsed(of("completed", response={"status": "completed", "output": output})) == [
        ReasoningPiece("r"),
        ReasoningEnd(),
        TextPiece("a"),
        ToolBegun(0, "c", "f"),
        ArgumentsPiece(0, "{}"),
        Finished(Finish.TOOLS),
    ]


def test_parts_of_a_thought_are_lines() -> None:
    assert parsed(
        of("reasoning_summary_text.delta", summary_index=0, delta="a"),
        of("reasoning_summary_text.delta", summary_index=1, delta="b"),
        of("reasoning_summary_text.delta", summary_index=1, delta="c"),
        of("output_item.done", item={"type": "reasoning", "summary": [{"text": "a"}, {"text": "bc"}]}),
    ) == [ReasoningPiece("a"), ReasoningPiece("\nb"), ReasoningPiece("c"), ReasoningEnd()]


def test_e10_a_thought_ends_with_its_seal_and_one_without_words_is_only_that() -> None:
    told = THOUGHT | {"encrypted_content": "gAAA"}
    silent = {"type": "reasoning", "summary": [], "encrypted_content": "gBBB"}
    assert parsed(of("output_item.done", item=told), of("output_item.done", 1, item=silent)) == [
        ReasoningPiece("r"),
        ReasoningEnd("gAAA", Api.OPENAI_RESPONSES),
        Sealed("gBBB", Api.OPENAI_RESPONSES),
    ]


def test_a_free_form_call() -> None:
    item = {"type": "custom_tool_call", "call_id": "c", "name": "g", "input": ""}
    assert parsed(of("output_item.added", item=item), of("custom_tool_call_input.delta", delta="x")) == [
        ToolBegun(0, "c", "g", is_free_form=True),
        ArgumentsPiece(0, "x"),
    ]


def test_a16_an_incomplete_stream_is_cut_by_its_cap() -> None:
    response = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert parsed(of("incomplete", response=response)) == [Finished(Finish.LENGTH)]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.failed", "response": {"error": {"message": "boom"}}},
        {"type": "error", "message": "boom"},
        {"type": "error", "error": {"message": "boom"}},
    ],
)
def test_a16_a_failure_is_told(event: Any) -> None:
    assert parsed(event) == [Failed("boom")]


@pytest.mark.parametrize(
    "event", [{}, 7, {"type": "response.new"}, of("output_text.delta"), of("output_item.done", item=7)]
)
def test_what_makes_no_sense_is_passed_over(event: Any) -> None:
    assert parsed(event) == []
    parser = ResponsesStreamParser()
    assert parser.feed(Event("", b"{", b"")) == parser.close() == []


def test_d4_a_call_that_comes_only_with_the_end_is_taken_from_there_and_one_that_came_is_not() -> None:
    first = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    second = first | {"call_id": "c2", "name": "g"}
    response = {"status": "completed", "output": [{"type": "reasoning"}, first, second]}
    assert parsed(of("output_item.done", item=first), of("completed", response=response)) == [
        ToolBegun(0, "c1", "f"),
        ArgumentsPiece(0, "{}"),
        ToolBegun(1, "c2", "g"),
        ArgumentsPiece(1, "{}"),
        Finished(Finish.TOOLS),
    ]

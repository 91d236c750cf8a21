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
    RefusalPiece,
    Started,
    TextPiece,
    ToolBegun,
)
from kinference.shapes.ir import Unread
from kinference.shapes.openai_chat.parse_stream import CALLS_MAX, ChatStreamParser
from kinference.shapes.sse import Event
from tests.unit.shapes.conversions import CHAT, MESSAGES, Stream, chunk, data


def parsed(*events: Any) -> list[Piece]:
    parser = ChatStreamParser()
    texts = (event if isinstance(event, str) else json.dumps(event) for event in events)
    pieces = [piece for text in texts for piece in parser.feed(Event("", text.encode(), b""))]
    return [piece for piece in (*pieces, *parser.close()) if not isinstance(piece, Started)]


def call(index: int | None = None, call_id: str = "", name: str = "", arguments: Any = None) -> Any:
    function = ({"name": name} if name else {}) | ({} if arguments is None else {"arguments": arguments})
    made: dict[str, Any] = {"function": function} | ({"id": call_id} if call_id else {})
    return chunk({"tool_calls": [made if index is None else {"index": index, **made}]})


def calls(*events: Any) -> dict[str, str]:
    """Arguments by the call's id."""
    ids: dict[int, str] = {}
    found: dict[str, str] = {}
    for piece in parsed(*events):
        if isinstance(piece, ToolBegun):
            ids[piece.call] = piece.id
            found[piece.id] = ""
        elif isinstance(piece, ArgumentsPiece):
            found[ids[piece.call]] += piece.text
    return found


def test_a_whole_stream() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 2}
    assert parsed(
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning": "r"}),
        chunk({"content": "a"}),
        chunk({"refusal": "n"}),
        chunk({}, "stop"),
        {"choices": [], "usage": usage},
        "[DONE]",
    ) == [ReasoningPiece("r"), TextPiece("a"), RefusalPiece("n"), Finished(Finish.STOP), Counted(Counts(9, 2))]


def test_a8_it_begins_with_the_first_chunk_also_one_without_choices() -> None:
    preamble = Event("", json.dumps({"choices": [], "prompt_filter_results": []}).encode(), b"")  # a8
    assert ChatStreamParser().feed(preamble) == [Started("", "")]


def test_b3_interleaved_calls_are_told_apart_by_index() -> None:
    assert calls(
        call(0, "c0", "f", '{"a"'), call(1, "c1", "g", '{"b":1}'), call(0, arguments=":1}"), chunk({}, "tool_calls")
    ) == {"c0": '{"a":1}', "c1": '{"b":1}'}


def test_b4_calls_without_index_are_told_apart_by_id_and_the_rest_belongs_to_the_last() -> None:
    assert calls(call(None, "c1", "f", "{"), call(None, "c2", "g", '{"x"'), call(arguments=":1}")) == {
        "c1": "{",
        "c2": '{"x":1}',
    }


def test_b4_calls_that_share_an_index_are_told_apart_by_id() -> None:
    events = (call(0, "c1", "f", "{}"), call(0, "c2", "g", '{"x"'), call(0, arguments=":1}"))
    assert calls(*events) == {"c1": "{}", "c2": '{"x":1}'}


def test_an_index_may_begin_anywhere_and_have_gaps() -> None:
    assert calls(call(2, "c2", "f", "{}"), call(5, "c5", "g", "{}")) == {"c2": "{}", "c5": "{}"}


def test_an_id_on_every_chunk_is_still_one_call() -> None:
    assert calls(call(0, "c", "f", "{"), call(0, "c", arguments="}"), call(0, "c", "f", "")) == {"c": "{}"}


def test_arguments_before_the_name_wait_for_it() -> None:
    assert parsed(call(0, "c", arguments="{"), call(0, name="f", arguments="}")) == [
        ToolBegun(0, "c", "f"),
        ArgumentsPiece(0, "{}"),
    ]


def test_arguments_as_an_object_and_a_call_without_id() -> None:
    begun, arguments = parsed(call(0, name="f", arguments={"a": 1}))
    assert isinstance(begun, ToolBegun)
    assert begun.id.startswith("call_")
    assert arguments == ArgumentsPiece(0, '{"a":1}')


def test_a_name_in_pieces_is_joined_and_one_that_is_repeated_is_not() -> None:
    events = (call(0, "c", "get_", ""), call(0, name="weather"), call(0, arguments="{"), call(0, arguments="}"))
    begun = [ToolBegun(0, "c", "get_weather"), ArgumentsPiece(0, "{"), ArgumentsPiece(0, "}")]
    assert parsed(*events) == begun
    again = (call(0, "c", "get_weather", ""), call(0, "c", "get_weather", "{"), call(0, "c", "get_weather", "}"))
    assert parsed(*again) == begun


@pytest.mark.parametrize("end", [chunk({}, "tool_calls"), "[DONE]"])
def test_a_call_without_arguments_begins_before_what_comes_after_it(end: Any) -> None:
    events = (call(0, "c", "f", ""), call(1, "d", "g", "{}"), call(2, "e", "h"), end)
    assert parsed(*events) == [
        ToolBegun(0, "c", "f"),
        ToolBegun(1, "d", "g"),
        ArgumentsPiece(1, "{}"),
        ToolBegun(2, "e", "h"),
        Finished(Finish.TOOLS),
    ]


def test_the_older_form_of_a_call_is_one() -> None:
    begun, *rest = parsed(
        chunk({"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}}),
        chunk({"function_call": {"arguments": '{"a"'}}),
        chunk({"function_call": {"arguments": ":1}"}}),
        chunk({}, "function_call"),
    )
    assert isinstance(begun, ToolBegun)
    assert (begun.call, begun.name, begun.id[:5]) == (0, "f", "call_")
    assert rest == [ArgumentsPiece(0, '{"a"'), ArgumentsPiece(0, ":1}"), Finished(Finish.TOOLS)]


def test_a_message_in_place_of_a_delta_is_one() -> None:
    message = {"role": "assistant", "content": "a", "function_call": {"name": "f", "arguments": "{}"}}
    text, begun, arguments, end = parsed({"choices": [{"message": message, "finish_reason": "function_call"}]})
    assert (text, arguments, end) == (TextPiece("a"), ArgumentsPiece(0, "{}"), Finished(Finish.TOOLS))
    assert isinstance(begun, ToolBegun)


def test_a_message_after_deltas_repeats_them() -> None:
    whole = {"choices": [{"message": {"content": "ab"}, "finish_reason": "stop"}]}
    assert parsed(chunk({"content": "a"}), chunk({"content": "b"}), whole) == [
        TextPiece("a"),
        TextPiece("b"),
        Finished(Finish.STOP),
    ]


@pytest.mark.parametrize(
    "delta", [{"reasoning": "r"}, {"reasoning_content": "r"}, {"reasoning": "r", "reasoning_content": "r"}]
)
def test_a_thought_is_read_once_under_either_name(delta: Any) -> None:
    assert parsed(chunk(delta)) == [ReasoningPiece("r")]


@pytest.mark.parametrize(
    ("events", "finish"),
    [
        ((chunk({"content": "a"}), "[DONE]"), Finish.STOP),
        ((call(0, "c", "f", "{}"), "[DONE]"), Finish.TOOLS),
        ((chunk({"content": "a"}, "length"),), Finish.LENGTH),
        ((call(0, "c", "f", "{}"), chunk({}, "stop")), Finish.TOOLS),
    ],
)
def test_a11_either_sign_of_the_end_is_enough(events: tuple[Any, ...], finish: Finish) -> None:
    assert parsed(*events)[-1] == Finished(finish)


def test_an_end_without_either_sign_is_none() -> None:
    parser = ChatStreamParser()
    parser.feed(Event("", json.dumps(chunk({"content": "a"})).encode(), b""))
    assert (parser.close(), parser.is_complete) == ([], False)


@pytest.mark.parametrize("error", [{"error": {"message": "boom"}}, {"object": "error", "message": "boom"}])
def test_an_error_ends_it(error: Any) -> None:
    assert parsed(error) == [Failed("boom")]


@pytest.mark.parametrize("text", ["", "{", "7", "[]", "null", '{"choices":7}', '{"choices":[{"delta":7}]}'])
def test_what_makes_no_sense_is_passed_over(text: str) -> None:
    assert parsed(text) == []


def test_content_may_come_in_parts() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    stream = Stream(MESSAGES, CHAT).feed(
        data(chunk({"content": [thought]}), chunk({"content": [{"type": "text", "text": "a"}]}))
    )
    deltas = [event["delta"] for event in stream.events if event["type"] == "content_block_delta"]
    assert deltas == [{"type": "thinking_delta", "thinking": "hm"}, {"type": "text_delta", "text": "a"}]


@pytest.mark.parametrize(("name", "arguments"), [("n", None), ("", "a")])
def test_a_call_that_goes_on_without_beginning_fails_and_is_not_kept(name: str, arguments: str | None) -> None:
    fragments = [
        call(0, name=f"{at:04}{name * 996}" if name else "", arguments=arguments and arguments * 1000)
        for at in range(70)
    ]
    assert any(isinstance(piece, Failed) for piece in parsed(*fragments))
    assert not any(isinstance(piece, Failed) for piece in parsed(*fragments[:60]))


def test_arguments_of_any_length_come_with_their_name() -> None:
    long = "a" * 200_000
    pieces = parsed(call(0, "c", "f", long))
    assert [piece.text for piece in pieces if isinstance(piece, ArgumentsPiece)] == [long]


@pytest.mark.parametrize("reason", ["error", "abort", "insufficient_system_resource"])
def test_a_reason_that_the_server_gave_up_for_is_a_failure(reason: str) -> None:
    pieces = parsed(chunk({"content": "a"}), chunk({}, reason), "[DONE]")
    assert pieces[1] == Failed(f"the destination gave up within its answer: {reason}")


def test_what_a_choice_says_of_its_failure_is_told() -> None:
    choice = {"delta": {}, "finish_reason": "error", "error": {"code": 502, "message": "gone"}}
    assert parsed({"choices": [choice]})[0] == Failed("gone", "", 502)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("model_length", Finish.LENGTH), ("tool_use", Finish.TOOLS), ("safety", Finish.REFUSAL), ("eos", Finish.STOP)],
)
def test_reasons_are_understood_as_others_call_them(reason: str, finish: Finish) -> None:
    assert parsed(chunk({}, reason)) == [Finished(finish)]


def test_an_event_that_is_named_an_error_is_one() -> None:
    parser = ChatStreamParser()
    assert parser.feed(Event("error", b'{"detail":"boom"}', b"")) == [Failed("boom")]
    assert parser.feed(Event("error", b'{"error":"boom","error_type":"overloaded_error"}', b"")) == [
        Failed("boom", "overloaded_error", 529)
    ]


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "hm"}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
    ],
)
def test_a_thought_is_read_under_every_name(delta: Any) -> None:
    assert parsed(chunk(delta)) == [ReasoningPiece("hm")]


def test_a_thought_that_only_its_issuer_can_read_is_told() -> None:
    assert parsed(chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "s"}]})) == [
        Unread("reasoning.encrypted")
    ]


def test_a_stream_begins_no_more_calls_than_anybody_makes() -> None:
    parser = ChatStreamParser()
    pieces = [
        piece
        for at in range(CALLS_MAX + 1)
        for piece in parser.feed(Event("", json.dumps(call(at, f"c{at}")).encode(), b""))
    ]
    assert isinstance(pieces[-1], Failed)
    assert not any(isinstance(piece, Failed) for piece in pieces[:-1])


def test_an_error_in_a_list_is_one() -> None:
    assert parsed([{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}]) == [
        Failed("busy", "UNAVAILABLE", 503)
    ]

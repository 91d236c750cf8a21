from typing import Any

from google.genai.types import GenerateContentResponse

from tests.unit.shapes.conversions import CHAT, GEMINI, MESSAGES, Stream, chunk, data, named


def streamed(*events: Any) -> Stream:
    """A chat stream for a Gemini client; fails where the SDK would not take an event."""
    stream = Stream(GEMINI, CHAT).feed(data(*events)).end()
    for event in stream.events:
        GenerateContentResponse.model_validate(event)
    return stream


def test_text_and_thoughts_go_out_as_they_come() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 2}
    stream = streamed(
        chunk({"reasoning_content": "r"}),
        chunk({"content": "a"}),
        chunk({}, "length"),
        {"choices": [], "usage": usage},
        "[DONE]",
    )
    thought, text, last = stream.events
    assert thought["candidates"][0]["content"]["parts"] == [{"text": "r", "thought": True}]
    assert text["candidates"][0] == {"content": {"role": "model", "parts": [{"text": "a"}]}, "index": 0}
    assert last["candidates"][0]["finishReason"] == "MAX_TOKENS"
    assert last["usageMetadata"]["totalTokenCount"] == 11
    assert {event["responseId"] for event in stream.events} == {"c1"}
    assert stream.raw.endswith(b"\r\n\r\n")


def test_calls_go_out_whole() -> None:
    calls = [{"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"a"'}}]
    rest = [{"index": 0, "function": {"arguments": ":1}"}}]
    stream = streamed(chunk({"tool_calls": calls}), chunk({"tool_calls": rest}), chunk({}, "tool_calls"), "[DONE]")
    (last,) = stream.events
    assert last["candidates"][0]["content"]["parts"] == [{"functionCall": {"id": "c", "name": "f", "args": {"a": 1}}}]
    assert last["candidates"][0]["finishReason"] == "STOP"


def test_an_error_is_the_last_event() -> None:
    stream = Stream(GEMINI, CHAT).feed(data(chunk({"content": "a"}), {"error": {"message": "boom"}}, "[DONE]"))
    assert stream.events[-1]["error"] == {"code": 500, "message": "boom", "status": "INTERNAL"}


def test_nothing_keeps_it_alive() -> None:
    assert Stream(GEMINI, CHAT).translation.keep_alive() == b""


def test_an_answer_that_declines_and_simply_stops_has_declined() -> None:
    said, last = streamed(chunk({"refusal": "no"}), chunk({}, "stop"), "[DONE]").events
    assert said["candidates"][0]["content"]["parts"] == [{"text": "no"}]
    assert last["candidates"][0]["finishReason"] == "SAFETY"


def test_a_call_that_the_cap_cut_is_left_out() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"a'}}
    events = Stream(GEMINI, CHAT).feed(data(chunk({"tool_calls": [call]}), chunk({}, "length"), "[DONE]")).end().events
    assert "functionCall" not in str(events)
    assert events[-1]["candidates"][0]["finishReason"] == "MAX_TOKENS"


def test_no_usage_is_told_where_none_is_known_and_no_status_that_google_has_not() -> None:
    stream = Stream(GEMINI, CHAT).feed(data(chunk({"content": "a"}), chunk({}, "stop"), "[DONE]"))
    assert "usageMetadata" not in stream.events[-1]
    busy = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    stream = Stream(GEMINI, MESSAGES).feed(named(busy))
    assert stream.events[-1]["error"] == {"code": 503, "message": "busy", "status": "UNAVAILABLE"}

from typing import Any

import pytest
from openai._models import validate_type
from openai.types.responses import ResponseFailedEvent, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.unit.shapes.conversions import CHAT, MESSAGES, RESPONSES, Stream, chunk, data, named

ADAPTER: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def streamed(*events: Any) -> Stream:
    """A chat stream for a Responses client; fails where the SDK would not take an event."""
    stream = Stream(RESPONSES, CHAT).feed(data(*events)).end()
    for number, event in enumerate(stream.events):
        ADAPTER.validate_python(event)
        assert event["sequence_number"] == number  # d1
    return stream


def call(arguments: str, call_id: str = "", name: str = "") -> Any:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return chunk({"tool_calls": [{"index": 0, "function": function} | ({"id": call_id} if call_id else {})]})


def test_d3_a_text_is_told_in_full_at_its_end() -> None:
    stream = streamed(chunk({"content": "a"}), chunk({"content": "b"}), chunk({}, "stop"), "[DONE]")
    assert stream.types == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    by_type = {event["type"]: event for event in stream.events}
    assert by_type["response.output_text.done"]["text"] == "ab"
    assert by_type["response.output_text.done"]["item_id"] == by_type["response.output_item.added"]["item"]["id"]
    (item,) = by_type["response.completed"]["response"]["output"]  # d4
    assert item["content"][0]["text"] == "ab"


def test_d3_a_call_is_told_in_full_at_its_end_and_opens_no_message() -> None:
    stream = streamed(call('{"a"', "c", "f"), call(":1}"), chunk({}, "tool_calls"), "[DONE]")
    done = next(event for event in stream.events if event["type"] == "response.function_call_arguments.done")
    assert (done["name"], done["arguments"], done["output_index"]) == ("f", '{"a":1}', 0)
    assert [item["type"] for item in stream.events[-1]["response"]["output"]] == ["function_call"]
    assert stream.events[-1]["response"]["output"][0]["call_id"] == "c"


def test_d6_the_end_waits_for_the_usage() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 2}
    stream = streamed(chunk({"content": "a"}), chunk({}, "stop"), {"choices": [], "usage": usage}, "[DONE]")
    response = stream.events[-1]["response"]
    assert response["usage"]["total_tokens"] == 11
    assert response["usage"]["output_tokens_details"] == {"reasoning_tokens": 0}
    assert response["text"]["format"] == {"type": "text"}


def test_thoughts_text_and_refusals_are_items_of_their_own() -> None:
    stream = streamed(
        chunk({"reasoning_content": "r"}),
        chunk({"content": "t"}),
        chunk({"refusal": "n"}),
        chunk({"content": "u"}),
        chunk({}, "stop"),
    )
    thought, text, refusal, more = stream.events[-1]["response"]["output"]
    assert thought["type"] == "reasoning"
    assert refusal["content"] == [{"type": "refusal", "refusal": "n"}]
    assert [item["content"][0]["text"] for item in (text, more)] == ["t", "u"]


@pytest.mark.parametrize(("finish", "status"), [("length", "incomplete"), ("content_filter", "incomplete")])
def test_an_answer_that_was_cut_is_incomplete(finish: str, status: str) -> None:
    stream = streamed(chunk({"content": "a"}), chunk({}, finish))
    assert stream.types[-1] == "response.incomplete"
    assert stream.events[-1]["response"]["status"] == status


def test_a10_a_stream_that_breaks_off_has_failed() -> None:
    stream = streamed(chunk({"content": "a"}))
    stream.raw += stream.translation.fail("gone", "upstream_closed")
    assert stream.types[-1] == "response.failed"
    assert stream.events[-1]["response"]["error"] == {"code": "server_error", "message": "gone"}
    assert Stream(RESPONSES, CHAT).translation.fail("gone", "x").startswith(b"event: response.failed\n")
    assert Stream(RESPONSES, CHAT).translation.keep_alive() == b": keep-alive\n\n"


@pytest.mark.parametrize(
    ("status", "code"), [(400, "invalid_prompt"), (429, "rate_limit_exceeded"), (503, "server_error")]
)
def test_an_error_is_a_failure_with_a_code_that_the_official_client_takes(status: int, code: str) -> None:
    stream = streamed(chunk({"content": "a"}), {"error": {"message": "boom", "type": "busy", "code": status}})
    failed = stream.events[-1]
    assert failed["type"] == "response.failed"
    assert failed["response"]["error"] == {"code": code, "message": "boom"}
    validate_type(type_=ResponseFailedEvent, value=failed)


def test_sealed_thoughts_come_back_to_their_issuer() -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "r"}}
    sign = {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}}
    redacted = {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "d"}}
    stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    stream = Stream(RESPONSES, MESSAGES).feed(
        named(start, sign, {"type": "content_block_stop", "index": 0}, redacted, stop, {"type": "message_stop"})
    )
    thought, shut = stream.events[-1]["response"]["output"]
    assert thought["summary"] == [{"type": "summary_text", "text": "r"}]
    assert thought["encrypted_content"].startswith("kinference.")
    assert shut["summary"] == []
    assert shut["encrypted_content"].startswith("kinference.")


def test_calls_within_a_namespace_and_for_more_tools_are_streamed_as_the_client_knows_them() -> None:
    group = {"type": "namespace", "name": "crm", "description": "", "tools": [{"type": "function", "name": "get"}]}
    search = {"type": "tool_search", "execution": "client", "parameters": {"type": "object"}}
    calls = [
        {"index": 0, "id": "c", "function": {"name": "crm__get", "arguments": "{}"}},
        {"index": 1, "id": "s", "function": {"name": "tool_search", "arguments": '{"query":"q"}'}},
    ]
    stream = Stream(RESPONSES, CHAT, tools=[group, search])
    stream.feed(data(chunk({"tool_calls": calls}), chunk({}, "tool_calls"), "[DONE]")).end()
    for event in stream.events:
        ADAPTER.validate_python(event)
    first, second = stream.events[-1]["response"]["output"]
    assert (first["namespace"], first["name"]) == ("crm", "get")
    assert (second["type"], second["arguments"]) == ("tool_search_call", {"query": "q"})

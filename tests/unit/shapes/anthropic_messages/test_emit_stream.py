import json
from typing import Any

from tests.unit.shapes.conversions import CHAT, MESSAGES, Stream, chunk, data


def call(index: int, arguments: str, call_id: str = "", name: str = "") -> Any:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return chunk({"tool_calls": [{"index": index, "function": function} | ({"id": call_id} if call_id else {})]})


def messages(*events: Any) -> Stream:
    return Stream(MESSAGES, CHAT).feed(data(*events)).end()


def blocks(stream: Stream) -> list[tuple[str, str]]:
    """Kind and text of each block; fails where two are open at once."""
    found: list[tuple[str, str]] = []
    is_open = False
    for event in stream.events:
        match event["type"]:
            case "content_block_start":
                assert not is_open
                assert event["index"] == len(found)
                is_open = True
                found.append((event["content_block"]["type"], ""))
            case "content_block_delta":
                assert is_open
                assert event["index"] == len(found) - 1
                kind, text = found[-1]
                delta = event["delta"]
                found[-1] = (
                    kind,
                    text + str(delta.get("text") or delta.get("partial_json") or delta.get("thinking") or ""),
                )
            case "content_block_stop":
                is_open = False
    assert not is_open
    return found


def test_b1_an_answer_that_begins_with_a_call() -> None:
    stream = messages(call(0, "{}", "call_1", "f"), chunk({}, "tool_calls"), "[DONE]")
    assert stream.types == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert stream.events[1]["content_block"] == {"type": "tool_use", "id": "call_1", "name": "f", "input": {}}
    assert stream.events[2]["delta"] == {"type": "input_json_delta", "partial_json": "{}"}  # b6
    assert stream.events[4]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}


def test_b3_interleaved_calls_are_written_one_after_another() -> None:
    stream = messages(
        call(0, '{"a"', "c0", "f"), call(1, '{"b":1}', "c1", "g"), call(0, ":1}"), chunk({}, "tool_calls"), "[DONE]"
    )
    assert blocks(stream) == [("tool_use", '{"a":1}'), ("tool_use", '{"b":1}')]


def test_b7_thoughts_and_text_never_share_a_block() -> None:
    stream = messages(
        chunk({"reasoning_content": "r"}), chunk({"content": "t"}), chunk({"reasoning_content": "s"}), chunk({}, "stop")
    )
    assert blocks(stream) == [("thinking", "r"), ("text", "t"), ("thinking", "s")]
    assert b"signature_delta" not in stream.raw


def test_b10_usage_at_the_end_has_all_four_counts() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 90}}
    stream = messages(chunk({"content": "a"}), chunk({}, "stop"), {"choices": [], "usage": usage}, "[DONE]")
    assert stream.events[0]["message"]["usage"]["input_tokens"] == 0
    assert stream.events[-2]["usage"] == {  # g3
        "input_tokens": 10,
        "output_tokens": 4,
        "cache_read_input_tokens": 90,
        "cache_creation_input_tokens": 0,
    }


def test_g4_cumulative_counts_are_not_added() -> None:
    counts = (chunk({"content": "a"}, usage={"completion_tokens": n}) for n in (10, 50, 100))
    assert messages(*counts, chunk({}, "stop")).events[-2]["usage"]["output_tokens"] == 100


def test_an_empty_answer_still_has_a_block() -> None:
    assert blocks(messages(chunk({}, "stop"), "[DONE]")) == [("text", "")]


def test_a13_an_error_has_its_name() -> None:
    stream = messages({"error": {"message": "boom"}})
    assert stream.raw == b'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"boom"}}\n\n'


def test_a10_no_end_turn_for_a_stream_that_was_cut() -> None:
    stream = messages(chunk({"content": "a"}))
    assert "message_delta" not in stream.types
    assert not stream.translation.is_whole
    assert json.loads(stream.translation.fail("gone", "x").split(b"data: ")[1])["error"]["message"] == "gone"


def test_a14_nothing_comes_after_the_end() -> None:
    stream = messages(chunk({}, "stop"), "[DONE]", {"error": {"message": "late"}})
    assert stream.types[-1] == "message_stop"


def test_it_can_be_kept_alive_by_a_ping() -> None:
    assert Stream(MESSAGES, CHAT).translation.keep_alive() == b'event: ping\ndata: {"type":"ping"}\n\n'


def test_an_answer_that_declines_and_simply_stops_has_declined() -> None:
    stream = messages(chunk({"refusal": "no"}), chunk({}, "stop"), "[DONE]")
    assert blocks(stream) == [("text", "no")]
    assert stream.events[-2]["delta"]["stop_reason"] == "refusal"


def test_b6_arguments_are_never_text() -> None:
    stream = messages(call(0, '{"a"', "c", "f"), call(0, ":1}"), chunk({}, "tool_calls"), "[DONE]")
    deltas = [event["delta"] for event in stream.events if event["type"] == "content_block_delta"]
    assert deltas == [
        {"type": "input_json_delta", "partial_json": '{"a"'},
        {"type": "input_json_delta", "partial_json": ":1}"},
    ]


def test_a8_a_first_chunk_without_choices_comes_to_nothing_but_the_beginning() -> None:
    preamble = {"id": "", "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}
    stream = messages(preamble, chunk({"content": "a"}), chunk({}, "stop"), "[DONE]")
    assert stream.types[0] == "message_start"
    assert stream.types.count("message_start") == 1
    assert blocks(stream) == [("text", "a")]

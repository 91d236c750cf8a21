import pytest

from kinference.shapes.answers import Frame
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import CHAT, COMPLETIONS, MESSAGES, Stream, named

START = {"type": "message_start", "message": {"id": "msg_1", "model": "up", "usage": {"input_tokens": 3}}}
STOP = {"type": "message_stop"}


def block(index: int, **members: object) -> dict[str, object]:
    return {"type": "content_block_start", "index": index, "content_block": members}


def delta(index: int, **members: object) -> dict[str, object]:
    return {"type": "content_block_delta", "index": index, "delta": members}


def end(reason: str = "end_turn", **usage: int) -> dict[str, object]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def test_a_text_in_chunks() -> None:
    stream = Stream(CHAT, MESSAGES)
    stream.feed(
        named(START, block(0, type="text", text=""), delta(0, type="text_delta", text="hi"), end(output_tokens=2), STOP)
    )
    first, text, finish, usage, done = stream.events
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert text == {
        "id": "msg_1",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "up",
        "choices": [{"index": 0, "delta": {"content": "hi"}, "logprobs": None, "finish_reason": None}],
        "usage": None,
    }
    assert finish["choices"][0]["finish_reason"] == "stop"
    assert (usage["choices"], usage["usage"]["total_tokens"]) == ([], 5)
    assert done == "[DONE]"


def test_g13_no_usage_for_who_did_not_ask() -> None:
    stream = Stream(CHAT, MESSAGES, Frame("r", 1, wants_usage=False))
    stream.feed(named(START, end(), STOP))
    assert [("usage" in event) for event in stream.events[:-1]] == [False, False]


def test_c1_calls_are_counted_by_themselves_and_not_by_block() -> None:
    stream = Stream(CHAT, MESSAGES)
    tool = block(1, type="tool_use", id="t1", name="f", input={})
    stream.feed(
        named(START, block(0, type="text", text=""), tool, delta(1, type="input_json_delta", partial_json="{}"))
    )
    _, begun, arguments = stream.events
    assert begun["choices"][0]["delta"]["tool_calls"] == [
        {"index": 0, "id": "t1", "type": "function", "function": {"name": "f", "arguments": ""}}
    ]
    assert arguments["choices"][0]["delta"]["tool_calls"] == [{"index": 0, "function": {"arguments": "{}"}}]
    assert {event["choices"][0]["index"] for event in stream.events} == {0}


def test_a_call_without_arguments_gets_an_empty_object() -> None:
    stream = Stream(CHAT, MESSAGES)
    stream.feed(named(START, block(0, type="tool_use", id="t1", name="f", input={}), end("tool_use"), STOP))
    arguments, finish = stream.events[2:4]
    assert arguments["choices"][0]["delta"]["tool_calls"][0]["function"] == {"arguments": "{}"}
    assert finish["choices"][0]["finish_reason"] == "tool_calls"


def test_thoughts_and_their_seals() -> None:
    stream = Stream(CHAT, MESSAGES)
    stream.feed(
        named(
            START,
            block(0, type="thinking", thinking="", signature=""),
            delta(0, type="thinking_delta", thinking="r"),
            delta(0, type="signature_delta", signature="s"),
            {"type": "content_block_stop", "index": 0},
            block(1, type="redacted_thinking", data="d"),
        )
    )
    _, thought, sealed, redacted = (event["choices"][0]["delta"] for event in stream.events)
    assert thought == {"reasoning_content": "r", "reasoning": "r"}
    assert sealed == {"thinking_blocks": [{"type": "thinking", "signature": "s"}]}
    assert redacted == {"thinking_blocks": [{"type": "redacted_thinking", "data": "d"}]}


def test_an_error_has_no_good_end_after_it() -> None:
    stream = Stream(CHAT, MESSAGES)
    stream.feed(named(START, {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, STOP)).end()
    assert stream.events[-1] == {
        "error": {"message": "busy", "type": "server_error", "param": None, "code": "overloaded"}
    }
    assert stream.translation.is_failed


def test_a10_a_stream_that_breaks_off_says_so() -> None:
    stream = Stream(CHAT, MESSAGES).feed(named(START)).end()
    stream.raw += stream.translation.fail("gone", "upstream_closed")
    assert stream.events[-1]["error"]["code"] == "upstream_closed"
    assert b"[DONE]" not in stream.raw
    assert stream.translation.keep_alive() == b""


def test_it_can_be_kept_alive_by_a_comment() -> None:
    assert Stream(CHAT, MESSAGES).translation.keep_alive() == b": keep-alive\n\n"


@pytest.mark.parametrize("client", [CHAT, COMPLETIONS])
def test_no_usage_is_told_where_none_is_known(client: Api) -> None:
    stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    stream = Stream(client, MESSAGES).feed(named({"type": "message_start", "message": {}}, stop, STOP))
    assert stream.events[-1] == "[DONE]"
    assert stream.events[-2]["choices"][0]["finish_reason"] == "stop"

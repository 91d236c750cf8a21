from kinference.shapes.answers import Counts
from tests.unit.shapes.bedrock_converse.frames import error, frame
from tests.unit.shapes.conversions import CHAT, CONVERSE, MESSAGES, Stream, answered

START = frame("messageStart", {"role": "assistant"})
STOP = frame("messageStop", {"stopReason": "tool_use"})
USAGE = frame("metadata", {"usage": {"inputTokens": 3, "outputTokens": 2}})


def delta(index: int, **members: object) -> bytes:
    return frame("contentBlockDelta", {"contentBlockIndex": index, "delta": members})


def test_a_whole_stream() -> None:
    tool = frame("contentBlockStart", {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "c", "name": "f"}}})
    stream = Stream(CHAT, CONVERSE).feed(
        START,
        delta(0, reasoningContent={"text": "r"}),
        delta(0, reasoningContent={"signature": "s"}),
        frame("contentBlockStop", {"contentBlockIndex": 0}),
        delta(1, text="a"),
        tool,
        delta(2, toolUse={"input": "{}"}),
        STOP,
        USAGE,
    )
    deltas = [event["choices"][0]["delta"] for event in stream.events[:-2]]
    assert deltas[1:5] == [
        {"reasoning_content": "r", "reasoning": "r"},
        {"thinking_blocks": [{"type": "thinking", "signature": "s"}]},
        {"content": "a"},
        {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]},
    ]
    assert stream.events[-3]["choices"][0]["finish_reason"] == "tool_calls"
    assert stream.events[-1] == "[DONE]"
    assert stream.translation.counts == Counts(3, 2)


def test_the_reason_alone_is_an_end_when_the_stream_closes() -> None:
    stream = Stream(MESSAGES, CONVERSE).feed(START, delta(0, text="a"), STOP)
    assert "message_stop" not in stream.types
    assert stream.end().types[-1] == "message_stop"


def test_an_exception_is_an_error_of_the_clients_kind() -> None:
    stream = Stream(MESSAGES, CONVERSE).feed(
        START, frame("throttlingException", {"message": "slow"}, "exception"), STOP
    )
    assert stream.events[-1] == {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}
    assert stream.translation.is_failed


def test_what_makes_no_sense_is_passed_over() -> None:
    stream = Stream(CHAT, CONVERSE).feed(
        frame("contentBlockDelta", 7), frame("news", {}), delta(9, toolUse={"input": "x"})
    )
    assert stream.raw == b""


def test_what_claude_signed_and_sealed_reaches_a_client_of_its_own_api() -> None:
    stream = Stream(MESSAGES, CONVERSE).feed(
        START,
        delta(0, reasoningContent={"text": "r"}),
        delta(0, reasoningContent={"signature": "s1"}),
        delta(0, reasoningContent={"signature": "s2"}),
        frame("contentBlockStop", {"contentBlockIndex": 0}),
        delta(1, reasoningContent={"redactedContent": "d"}),
        frame("contentBlockStop", {"contentBlockIndex": 1}),
        delta(2, text="a"),
    )
    begun = [event["content_block"] for event in stream.events if event["type"] == "content_block_start"]
    assert [block["type"] for block in begun] == ["thinking", "redacted_thinking", "text"]
    assert begun[1]["data"] == "d"
    signatures = [event["delta"]["signature"] for event in stream.events if "signature" in event.get("delta", {})]
    assert signatures == ["s1s2"]


def test_an_error_of_the_service_that_its_model_does_not_list_is_one() -> None:
    stream = Stream(MESSAGES, CONVERSE).feed(START, error("InternalFailure", "slow"))
    assert stream.events[-1]["error"] == {"type": "api_error", "message": "slow"}
    stream = Stream(MESSAGES, CONVERSE).feed(START, error("Throttling", "slow"))
    assert stream.events[-1]["error"] == {"type": "rate_limit_error", "message": "slow"}
    assert stream.translation.is_failed


def test_a_call_that_the_provider_makes_itself_is_none_of_its_clients() -> None:
    call = {"toolUseId": "c", "name": "nova_grounding", "type": "server_tool_use"}
    start = frame("contentBlockStart", {"contentBlockIndex": 0, "start": {"toolUse": call}})
    stop = frame("messageStop", {"stopReason": "end_turn"})
    stream = (
        Stream(CHAT, CONVERSE).feed(START, start, delta(0, toolUse={"input": "{}"}), delta(1, text="a"), stop).end()
    )
    assert b"tool_calls" not in stream.raw
    assert b"dropped=answer.server_tool_use" in stream.raw
    content = [{"toolUse": call | {"input": {}}}, {"text": "a"}]
    answer = answered({"output": {"message": {"content": content}}, "stopReason": "end_turn"}, CHAT, CONVERSE)
    assert "tool_calls" not in answer["choices"][0]["message"]

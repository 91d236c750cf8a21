import pytest
from openai.types.responses import Response
from pydantic import TypeAdapter

from kinference.shapes.answers import Answer, Counts, Finish, Frame, NoAnswer
from kinference.shapes.ir import Reasoning, Refusal, Sealed, Text, ToolCall, Unread
from kinference.shapes.openai_responses.answer import emit_answer, parse_answer
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import CHAT, RESPONSES, Stream, answered, chunk, data

FRAME = Frame("req_1", 7)


def test_what_an_answer_says() -> None:
    answer = parse_answer(
        {
            "id": "resp_1",
            "model": "m",
            "status": "completed",
            "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "r"}], "content": []},
                {
                    "type": "message",
                    "content": [{"type": "output_text", "text": "t"}, {"type": "refusal", "refusal": "n"}],
                },
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "custom_tool_call", "call_id": "d", "name": "g", "input": "x"},
                {"type": "computer_call", "id": "w"},
            ],
            "usage": {"input_tokens": 9, "output_tokens": 5},
        }
    )
    assert answer.blocks == (
        Reasoning("r"),
        Text("t"),
        Refusal("n"),
        ToolCall("c", "f", "{}"),
        ToolCall("d", "g", "x", is_free_form=True),
        Unread("computer_call"),
    )
    assert (answer.finish, answer.counts) == (Finish.TOOLS, Counts(9, 5))


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("max_output_tokens", Finish.LENGTH), ("content_filter", Finish.REFUSAL), (None, Finish.LENGTH)],
)
def test_a16_an_incomplete_answer_is_no_success(reason: object, finish: Finish) -> None:
    assert parse_answer({"status": "incomplete", "incomplete_details": {"reason": reason}}).finish is finish


def test_a16_a_failed_answer_is_none() -> None:
    with pytest.raises(NoAnswer, match="boom"):
        parse_answer({"status": "failed", "error": {"message": "boom"}})
    with pytest.raises(NoAnswer):
        parse_answer({"status": "failed", "error": None})


def test_d1_the_sdk_takes_every_answer() -> None:
    issuer = Api.ANTHROPIC_MESSAGES
    blocks = (
        Reasoning("r", "s", issuer),
        Sealed("d", issuer),
        Text("t"),
        Refusal("n"),
        ToolCall("c", "f", "{}"),
        ToolCall("d", "g", "x", is_free_form=True),
    )
    frame = Frame("req_1", 7, echo={"instructions": "s", "text": {"verbosity": "low"}, "tools": None})
    body = emit_answer(Answer("msg_1", "m", blocks, Finish.TOOLS, counts=Counts(9, 5)), frame)
    response = TypeAdapter(Response).validate_python(body, strict=False)
    assert (response.id, response.status, len(response.output)) == ("resp_msg_1", "completed", 6)
    assert response.usage is not None
    assert response.usage.total_tokens == 14
    assert response.instructions == "s"
    assert body["text"] == {"format": {"type": "text"}, "verbosity": "low"}
    assert len({item["id"] for item in body["output"]}) == 6


def test_an_answer_cut_by_its_cap_is_incomplete() -> None:
    body = emit_answer(Answer("", "m", (Text("t"),), Finish.LENGTH), FRAME)
    assert (body["id"], body["status"]) == ("resp_req_1", "incomplete")
    assert body["incomplete_details"] == {"reason": "max_output_tokens"}


def test_the_item_that_the_cap_cut_is_incomplete() -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": '{"a'}}
    body = {"choices": [{"message": {"content": "a", "tool_calls": [call]}, "finish_reason": "length"}]}
    assert [item["status"] for item in answered(body, RESPONSES, CHAT)["output"]] == ["completed", "incomplete"]
    delta = chunk({"content": "a", "tool_calls": [{"index": 0, **call}]})
    events = Stream(RESPONSES, CHAT).feed(data(delta, chunk({}, "length"), "[DONE]")).end().events
    assert [item["status"] for item in events[-1]["response"]["output"]] == ["completed", "incomplete"]
    done = [event["item"]["status"] for event in events if event["type"] == "response.output_item.done"]
    assert done == ["completed", "incomplete"]


def test_a_call_without_arguments_has_an_object_for_clients_to_decode() -> None:
    for block, arguments in ((ToolCall("c", "f", ""), "{}"), (ToolCall("c", "f", '{"a":1}'), '{"a":1}')):
        (item,) = emit_answer(Answer(blocks=(block,), finish=Finish.TOOLS), Frame("r"))["output"]
        assert item["arguments"] == arguments

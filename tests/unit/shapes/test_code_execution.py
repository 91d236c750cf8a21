import json
from typing import Any

import pytest
from anthropic.types import Message, RawMessageStreamEvent
from google.genai.types import GenerateContentResponse
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from kinference.shapes.answers import Answer
from kinference.shapes.code_execution import held_of, in_words, joined, of_gemini, of_messages, to_messages
from kinference.shapes.foreign_thoughts import without_foreign_thoughts
from kinference.shapes.ir import Executed, Json, Role, Text, Turn, Unread
from kinference.shapes.lost import Untranslatable
from kinference.shapes.seals import MARK
from kinference.shapes.way_back import losses_of, read_answer
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import (
    CHAT,
    COMPLETIONS,
    CONVERSE,
    GEMINI,
    HI,
    MESSAGES,
    RESPONSES,
    Stream,
    a_plan,
    answered,
    data,
    named,
    planned,
    sent,
    warnings,
)

ASKING: dict[Api, Any] = {
    RESPONSES: {"model": "m", "input": "hi", "tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]},
    MESSAGES: {
        "model": "m",
        "max_tokens": 9,
        "messages": HI,
        "tools": [{"type": "code_execution_20250825", "name": "code_execution"}],
    },
    GEMINI: {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": [{"code_execution": {}}]},
}
ASKED: dict[Api, Any] = {
    RESPONSES: {"type": "code_interpreter", "container": {"type": "auto"}},
    MESSAGES: {"type": "code_execution_20250825", "name": "code_execution"},
    GEMINI: {"codeExecution": {}},
}
CODE, OUTPUT = "print(6 * 7)", "42\n"
RUN = Executed(code=CODE, output=OUTPUT)
CALL: Json = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": CODE}}
RESULT: Json = {
    "type": "code_execution_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {"type": "code_execution_result", "stdout": OUTPUT, "stderr": "", "return_code": 0, "content": []},
}
ITEM: Json = {
    "id": "ci_1",
    "type": "code_interpreter_call",
    "status": "completed",
    "code": CODE,
    "container_id": "cntr_1",
    "outputs": [{"type": "logs", "logs": OUTPUT}],
}
PARTS: list[Json] = [
    {"executableCode": {"language": "PYTHON", "code": CODE}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": OUTPUT}},
]
ANSWERS: dict[Api, Any] = {
    RESPONSES: {
        "status": "completed",
        "output": [ITEM, {"type": "message", "content": [{"type": "output_text", "text": "so"}]}],
    },
    MESSAGES: {"content": [CALL, RESULT, {"type": "text", "text": "so"}], "stop_reason": "end_turn"},
    GEMINI: {"candidates": [{"content": {"parts": [*PARTS, {"text": "so"}]}, "finishReason": "STOP"}]},
}
STREAMS: dict[Api, bytes] = {
    RESPONSES: named(
        {"type": "response.output_item.added", "output_index": 0, "item": {**ITEM, "status": "in_progress"}},
        {"type": "response.code_interpreter_call_code.delta", "output_index": 0, "delta": CODE},
        {"type": "response.output_item.done", "output_index": 0, "item": ITEM},
        {"type": "response.output_text.delta", "output_index": 1, "delta": "so"},
        {"type": "response.completed", "response": ANSWERS[RESPONSES]},
    ),
    MESSAGES: named(
        {"type": "content_block_start", "index": 0, "content_block": {**CALL, "input": {}}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": text}}
            for text in ('{"code":', json.dumps(CODE) + "}")
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": RESULT},
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "so"}},
        {"type": "content_block_stop", "index": 2},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ),
    GEMINI: data(
        *({"candidates": [{"content": {"parts": [part]}}]} for part in (*PARTS, {"text": "so"})),
        {"candidates": [{"finishReason": "STOP"}]},
    ),
}


def read(body: Any, destination: Api) -> Answer:
    return read_answer(a_plan(CHAT, destination).back, json.dumps(body).encode())


def runs(answer: Answer) -> list[tuple[str, str, bool]]:
    return [(block.code, block.output, block.has_failed) for block in answer.blocks if isinstance(block, Executed)]


# --- asked for --------------------------------------------------------------------------------------


@pytest.mark.parametrize("destination", ASKED)
@pytest.mark.parametrize("client", ASKING)
def test_code_is_asked_for_in_the_destinations_words(client: Api, destination: Api) -> None:
    body = sent(ASKING[client], client, destination)
    assert body["tools"] == [ASKED[destination]]
    assert (body.get("include") == ["code_interpreter_call.outputs"]) == (destination is RESPONSES)
    assert "dropped" not in warnings(ASKING[client], client, destination)


@pytest.mark.parametrize("destination", [CHAT, CONVERSE])
@pytest.mark.parametrize("client", ASKING)
def test_a_destination_that_runs_none_is_not_asked(client: Api, destination: Api) -> None:
    with pytest.raises(Untranslatable, match=r"code|tools"):
        planned(ASKING[client], client, destination)


def test_where_code_runs_is_told_or_refused() -> None:
    def asked(container: Any) -> Any:
        return {**ASKING[RESPONSES], "tools": [{"type": "code_interpreter", "container": container}]}

    lost = warnings(asked({"type": "auto", "memory_limit": "4g"}), RESPONSES, MESSAGES)
    assert lost.startswith("dropped=code_interpreter.container.memory_limit")
    for held in ("cntr_1", {"type": "auto", "file_ids": ["file_1"]}):
        with pytest.raises(Untranslatable, match="container"):
            planned(asked(held), RESPONSES, MESSAGES)


def test_nobody_else_can_be_made_to_run_code_and_gemini_not_beside_functions() -> None:
    choice = {"type": "tool", "name": "code_execution"}
    with pytest.raises(Untranslatable, match="tool_choice"):
        planned({**ASKING[MESSAGES], "tool_choice": choice}, MESSAGES, RESPONSES)
    with pytest.raises(Untranslatable, match="tool_choice"):
        planned({**ASKING[RESPONSES], "tool_choice": "required"}, RESPONSES, MESSAGES)
    function = {"type": "function", "name": "f"}
    beside = {**ASKING[RESPONSES], "tools": [*ASKING[RESPONSES]["tools"], function]}
    assert len(sent(beside, RESPONSES, MESSAGES)["tools"]) == 2
    with pytest.raises(Untranslatable, match="functions"):
        planned(beside, RESPONSES, GEMINI)


# --- in answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("destination", ANSWERS)
def test_what_ran_and_what_came_of_it_is_read(destination: Api) -> None:
    assert runs(read(ANSWERS[destination], destination)) == [(CODE, OUTPUT, False)]


@pytest.mark.parametrize("destination", ANSWERS)
@pytest.mark.parametrize("client", ANSWERS)
def test_a_run_comes_back_in_the_clients_own_form(client: Api, destination: Api) -> None:
    whole = answered(ANSWERS[destination], client, destination)
    stream = Stream(client, destination).feed(STREAMS[destination]).end()
    match client:
        case Api.OPENAI_RESPONSES:
            Response.model_validate(whole)
            for event in stream.events:
                TypeAdapter[Any](ResponseStreamEvent).validate_python(event)
            for output in (whole["output"], stream.events[-1]["response"]["output"]):
                assert [item["type"] for item in output] == ["code_interpreter_call", "message"]
                assert (output[0]["code"], output[0]["outputs"][0]["logs"]) == (CODE, OUTPUT)
            assert stream.types.index("response.code_interpreter_call.interpreting") > 0
        case Api.ANTHROPIC_MESSAGES:
            Message.model_validate(whole)
            for event in stream.events:
                TypeAdapter[Any](RawMessageStreamEvent).validate_python(event)
            call, result, said = whole["content"]
            assert (call["input"], said["text"]) == ({"code": CODE}, "so")
            assert (call["id"], result["content"]["stdout"]) == (result["tool_use_id"], OUTPUT)
            begun = [event["content_block"] for event in stream.events if event["type"] == "content_block_start"]
            assert [block["type"] for block in begun] == [block["type"] for block in whole["content"]]
            assert begun[1]["content"]["stdout"] == OUTPUT
        case _:
            GenerateContentResponse.model_validate(whole)
            assert whole["candidates"][0]["content"]["parts"] == [*PARTS, {"text": "so"}]
            told = [part for event in stream.events for part in event["candidates"][0]["content"]["parts"]]
            assert [part for part in told if part.get("text") != ""] == [*PARTS, {"text": "so"}]


@pytest.mark.parametrize("client", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("destination", ANSWERS)
def test_a_client_without_a_form_for_runs_is_told_of_them(client: Api, destination: Api) -> None:
    back = a_plan(client, destination).back
    losses = losses_of(back, read_answer(back, json.dumps(ANSWERS[destination]).encode()))
    assert [str(loss) for loss in losses] == ["dropped=answer.code_execution"]
    raw = Stream(client, destination).feed(STREAMS[destination]).end().raw
    assert raw.count(b": x-kinference-warnings: dropped=answer.code_execution\n\n") == 1


def test_a_run_that_failed_has_failed_everywhere() -> None:
    parts = [PARTS[0], {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "boom"}}]
    body = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    assert answered(body, RESPONSES, GEMINI)["output"][0]["status"] == "failed"
    content = answered(body, MESSAGES, GEMINI)["content"][1]["content"]
    assert (content["stderr"], content["return_code"]) == ("boom", 1)
    error = {**RESULT, "content": {"type": "code_execution_tool_result_error", "error_code": "unavailable"}}
    assert of_messages(error) == Executed("srvtoolu_1", output="unavailable", has_failed=True)


def test_every_tool_of_anthropics_that_runs_code_is_read() -> None:
    shell = {"type": "server_tool_use", "id": "s", "name": "bash_code_execution", "input": {"command": "ls"}}
    editor = {**shell, "name": "text_editor_code_execution", "input": {"path": "a"}}
    assert of_messages(shell) == Executed("s", "ls")
    assert of_messages(editor) == Executed("s", '{"path":"a"}')
    listed = {"type": "bash_code_execution_tool_result", "tool_use_id": "s", "content": {"stdout": "a", "stderr": "b"}}
    assert of_messages(listed) == Executed("s", output="a\nb")
    assert of_messages({"type": "server_tool_use", "name": "web_fetch"}) is None


def test_what_a_provider_holds_of_a_run_is_told() -> None:
    files = {**RESULT, "content": {**RESULT["content"], "content": [{"type": "code_execution_output", "file_id": "f"}]}}
    assert list(held_of(files)) == [Unread("code_execution_output")]
    assert list(held_of({"content": {"encrypted_stdout": "x"}})) == [Unread("encrypted_stdout")]
    pictured = {**ITEM, "outputs": [{"type": "image", "url": "https://held"}]}
    assert Unread("code_interpreter_call.image") in read({"output": [pictured]}, RESPONSES).blocks
    shown = {**ITEM, "outputs": [{"type": "image", "url": "data:image/png;base64,iVBORw0KGgo="}]}
    assert "image" in str(answered({"output": [shown]}, CHAT, RESPONSES)["choices"][0]["message"]["images"])


def test_halves_find_each_other_and_none_is_lost() -> None:
    code, other = Executed("a", "1"), Executed("b", "2")
    done = [Executed("b", output="y"), Executed("a", output="x")]
    assert list(joined([code, other, *done])) == [Executed("b", "2", "y"), Executed("a", "1", "x")]
    assert list(joined([Executed(code="1"), Text("t"), Executed(code="2")])) == [
        Text("t"),
        Executed(code="1"),
        Executed(code="2"),
    ]
    assert list(joined(done)) == done


# --- in the history ---------------------------------------------------------------------------------


def test_earlier_runs_go_to_others_in_words() -> None:
    told = (Text(f"[ran this code]\n{CODE}"), Text(f"[its output]\n{OUTPUT}"))
    assert list(in_words([Turn(Role.ASSISTANT, (RUN, Text("so")))])) == [Turn(Role.ASSISTANT, (*told, Text("so")))]
    failed = Executed(output="boom", has_failed=True)
    assert list(in_words([Turn(Role.ASSISTANT, (failed,))])) == [Turn(Role.ASSISTANT, (Text("[its error]\nboom"),))]
    messages = [*HI, {"role": "assistant", "content": [CALL, RESULT, {"type": "text", "text": "so"}]}, *HI]
    body = {"model": "m", "max_tokens": 9, "messages": messages}
    assert [part["text"] for part in sent(body, MESSAGES, CHAT)["messages"][1]["content"]] == [
        *(text.text for text in told),
        "so",
    ]
    items = [{"role": "user", "content": "q"}, ITEM, {"role": "user", "content": "r"}]
    assert CODE in str(sent({"model": "m", "input": items}, RESPONSES, CHAT)["messages"][1])
    contents = [{"role": "user", "parts": [{"text": "q"}]}, {"role": "model", "parts": PARTS}]
    assert OUTPUT.strip() in str(sent({"contents": [*contents, contents[0]]}, GEMINI, MESSAGES)["messages"][1])
    assert of_gemini({"text": "t"}) is None


def test_a_run_of_another_provider_does_not_go_to_openai() -> None:
    item = answered(ANSWERS[GEMINI], RESPONSES, GEMINI)["output"][0]
    assert item["container_id"] == MARK
    body = json.dumps({"model": "m", "input": [item, {"role": "user", "content": "q"}]}).encode()
    kept = json.loads(without_foreign_thoughts(body, RESPONSES, at_provider=True))
    assert kept["input"] == [{"role": "user", "content": "q"}]


def test_ids_are_of_anthropics_alphabet() -> None:
    call, result = to_messages(RUN, "msg_a-b.c_0")
    assert call["id"] == result["tool_use_id"] == "srvtoolu_msg_a_b_c_0"

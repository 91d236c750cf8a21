import json
from typing import Any

import pytest
from anthropic.types.beta import BetaMessage, BetaRawMessageStreamEvent
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from kinference.shapes.ir import McpServer, Role, ServerCall, ServerTools, Text, Turn
from kinference.shapes.mcp_calls import (
    half_to_messages,
    item_id,
    listing_to_responses,
    of_messages,
    of_responses,
    placed,
    to_messages,
    to_responses,
)
from kinference.shapes.way_back import losses_of, read_answer
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import (
    CHAT,
    CONVERSE,
    GEMINI,
    HI,
    MESSAGES,
    RESPONSES,
    Stream,
    a_plan,
    answered,
    named,
    sent,
    warnings,
)

CALLED = {"type": "mcp_tool_use", "id": "mcp_1", "name": "find", "server_name": "docs", "input": {"q": 1}}
CAME = {
    "type": "mcp_tool_result",
    "tool_use_id": "mcp_1",
    "is_error": False,
    "content": [{"type": "text", "text": "x"}],
}
CALL = {
    "id": "mcp_1",
    "type": "mcp_call",
    "server_label": "docs",
    "name": "find",
    "arguments": '{"q":1}',
    "output": "x",
    "error": None,
    "status": "completed",
}
ONE = ServerCall("mcp_1", "docs", "find", '{"q":1}', "x")
OFFERED = {"name": "find", "description": "d", "input_schema": {"type": "object"}}
LISTING = {"type": "mcp_tool_listing", "mcp_server_name": "docs", "tools": [OFFERED]}
LISTED = {"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "docs", "tools": [OFFERED], "error": None}
TOLD = '[called find of the server docs with {"q":1}]'
SERVER = {"type": "url", "name": "docs", "url": "https://mcp.example/sse"}
TOOL = {"type": "mcp", "server_label": "docs", "server_url": "https://mcp.example/sse", "require_approval": "never"}
TOOLSET = {"type": "mcp_toolset", "mcp_server_name": "docs"}

ANSWERS: dict[Api, Any] = {
    RESPONSES: {
        "id": "resp_1",
        "model": "up",
        "status": "completed",
        "output": [LISTED, CALL, {"type": "message", "content": [{"type": "output_text", "text": "so"}]}],
    },
    MESSAGES: {
        "id": "msg_1",
        "model": "up",
        "content": [LISTING, CALLED, CAME, {"type": "text", "text": "so"}],
        "stop_reason": "end_turn",
    },
}
STREAMS: dict[Api, Any] = {
    RESPONSES: [
        {"type": "response.created", "response": {"id": "resp_1", "model": "up"}},
        {"type": "response.output_item.done", "output_index": 0, "item": LISTED},
        {"type": "response.output_item.added", "output_index": 1, "item": CALL | {"arguments": "", "output": None}},
        {"type": "response.mcp_call_arguments.delta", "output_index": 1, "delta": '{"q":1}'},
        {"type": "response.mcp_call_arguments.done", "output_index": 1, "arguments": '{"q":1}'},
        {"type": "response.output_item.done", "output_index": 1, "item": CALL},
        {"type": "response.output_text.delta", "output_index": 2, "delta": "so"},
        {"type": "response.completed", "response": ANSWERS[RESPONSES]},
    ],
    MESSAGES: [
        {"type": "message_start", "message": {"id": "msg_1", "model": "up", "usage": {"input_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": LISTING},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": CALLED | {"input": {}}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"q":'}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "1}"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_start", "index": 2, "content_block": CAME},
        {"type": "content_block_stop", "index": 2},
        {"type": "content_block_start", "index": 3, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "so"}},
        {"type": "content_block_stop", "index": 3},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ],
}


@pytest.mark.parametrize(("client", "destination"), [(RESPONSES, MESSAGES), (MESSAGES, RESPONSES)])
def test_calls_of_an_answer_come_in_the_clients_own_form(client: Api, destination: Api) -> None:
    answer = answered(ANSWERS[destination], client, destination)
    if client is RESPONSES:
        listing, call, message = Response.model_validate(answer, strict=False).output
        assert (answer["output"][1], message.type) == (CALL, "message")
        assert answer["output"][0] == LISTED | {"id": listing.id}
        assert call.type == "mcp_call"
    else:
        assert [block.type for block in BetaMessage.model_validate(answer).content] == [
            "mcp_tool_use",
            "mcp_tool_result",
            "text",
        ]
        assert answer["content"][:2] == [CALLED, CAME]


@pytest.mark.parametrize("destination", [MESSAGES, RESPONSES])
@pytest.mark.parametrize("client", [MESSAGES, RESPONSES])
def test_they_are_streamed_so_too(client: Api, destination: Api) -> None:
    stream = Stream(client, destination).feed(named(*STREAMS[destination])).end()
    told = b": x-kinference-warnings: dropped=answer.mcp_list_tools\n"
    assert stream.raw.count(b"x-kinference-warnings") == stream.raw.count(told) == (client is MESSAGES)
    adapter = TypeAdapter[Any](ResponseStreamEvent if client is RESPONSES else BetaRawMessageStreamEvent)
    for event in stream.events:
        adapter.validate_python(event)
    if client is RESPONSES:
        output = stream.events[-1]["response"]["output"]
        assert [item["type"] for item in output] == ["mcp_list_tools", "mcp_call", "message"]
        assert output[1] == CALL
        assert [kind for kind in stream.types if "mcp" in kind] == [
            "response.mcp_list_tools.in_progress",
            "response.mcp_list_tools.completed",
            "response.mcp_call.in_progress",
            "response.mcp_call_arguments.delta",
            "response.mcp_call_arguments.done",
            "response.mcp_call.completed",
        ]
    else:
        begun = [event["content_block"] for event in stream.events if event["type"] == "content_block_start"]
        assert begun[:2] == [CALLED | {"input": {}}, CAME]
        given = [event["delta"].get("partial_json") for event in stream.events if "index" in event and "delta" in event]
        assert given[0] == '{"q":1}'


@pytest.mark.parametrize("destination", [MESSAGES, RESPONSES])
@pytest.mark.parametrize("client", [CHAT, GEMINI])
def test_a_client_without_a_form_for_them_is_told(client: Api, destination: Api) -> None:
    back = a_plan(client, destination).back
    losses = losses_of(back, read_answer(back, json.dumps(ANSWERS[destination]).encode()))
    assert list(map(str, losses)) == ["dropped=answer.mcp_list_tools", "dropped=answer.mcp_call"]


def test_a_call_that_failed_has_failed_everywhere() -> None:
    failed = ServerCall("mcp_1", "docs", "find", "{}", "gone", has_failed=True)
    assert of_responses(to_responses("mcp_1", failed)) == failed
    assert of_responses(CALL | {"output": None, "error": "gone", "arguments": "{}"}) == failed
    assert (
        of_responses(CALL | {"error": {"type": "http_error", "code": 404, "message": "gone"}, "arguments": "{}"})
        == failed
    )
    assert of_responses(CALL | {"error": {"code": 1}}) == ServerCall(
        "mcp_1", "docs", "find", '{"q":1}', '{"code":1}', True
    )
    _, result = to_messages(failed, "p")
    assert result == CAME | {"is_error": True, "content": [{"type": "text", "text": "gone"}]}
    assert of_messages(result) == ServerCall("mcp_1", output="gone", has_failed=True)
    events = [*STREAMS[MESSAGES][:8], {**STREAMS[MESSAGES][8], "index": 2}]
    events[7] = {
        "type": "content_block_start",
        "index": 2,
        "content_block": CAME | {"is_error": True, "content": "gone"},
    }
    assert "response.mcp_call.failed" in Stream(RESPONSES, MESSAGES).feed(named(*events)).types


def test_ids_are_of_each_apis_alphabet() -> None:
    assert item_id(ServerCall("mcptoolu_1"), "") == "mcp_mcptoolu_1"
    assert item_id(ServerCall(), "r_0") == "mcp_r_0"
    assert to_messages(ServerCall("a.b", "s", "f"), "")[0]["id"] != "a.b"
    assert to_messages(ServerCall(server="s", name="f"), "r_0")[0]["id"] == "mcptoolu_r_0"


def test_arguments_that_are_no_object_are_kept() -> None:
    assert half_to_messages(ServerCall("c", "s", "f", '{"a":'))["input"] == {"_raw": '{"a":'}
    assert half_to_messages(ServerCall("c", "s", "f"))["input"] == {}


def test_what_is_neither_is_none_of_them() -> None:
    assert of_messages({"type": "text"}) is None
    assert of_responses({"type": "message"}) is None
    odd = {"type": "mcp_list_tools", "tools": [1, {"name": 2}, {"name": "a", "annotations": {}}]}
    assert of_responses(odd) == ServerTools("", ({"name": "a"},))
    assert listing_to_responses("l", ServerTools("s"))["tools"] == []


# --- the history ------------------------------------------------------------------------------------

TURNS = (Turn(Role.ASSISTANT, (ServerTools("docs"), ONE, Text("so"))),)


def test_a_call_is_in_the_destinations_form_while_its_server_is_offered() -> None:
    servers = (McpServer("docs", "u"),)
    assert [*placed(TURNS, servers, RESPONSES)] == [Turn(Role.ASSISTANT, (ONE, Text("so")))]
    half = ServerCall("mcp_1", "docs", "find", '{"q":1}')
    halves = (half, ServerCall("mcp_1", output="x"), Text("so"))
    assert [*placed(TURNS, servers, MESSAGES)] == [Turn(Role.ASSISTANT, halves)]
    in_words = [Turn(Role.ASSISTANT, (Text(f"{TOLD}\n[its result]\nx"), Text("so")))]
    assert [*placed(TURNS, (), RESPONSES)] == [*placed(TURNS, servers, CHAT)] == in_words
    assert [*placed((Turn(Role.ASSISTANT, (ServerTools("docs"),)),), servers, RESPONSES)] == []


def test_halves_find_each_other_and_none_is_lost() -> None:
    alone = Turn(Role.ASSISTANT, (ServerCall("a", "s", "f", "{}"), ServerCall("b", output="no", has_failed=True)))
    told = next(placed((alone,), (), CHAT)).blocks
    assert told == (Text("[called f of the server s with {}]"), Text("[its error]\nno"))
    both = Turn(Role.ASSISTANT, (ServerCall("a", "s", "f", "{}"), ServerCall("a", output="yes")))
    assert next(placed((both,), (McpServer("s", "u"),), RESPONSES)).blocks == (ServerCall("a", "s", "f", "{}", "yes"),)


def test_a_conversation_with_calls_goes_on_elsewhere() -> None:
    said = [LISTING, CALLED, CAME, {"type": "text", "text": "so"}]
    body = {"model": "m", "max_tokens": 99, "messages": [*HI, {"role": "assistant", "content": said}, *HI]}
    asking = body | {"mcp_servers": [SERVER], "tools": [TOOLSET]}
    assert sent(asking, MESSAGES, RESPONSES)["input"][1] == CALL
    assert warnings(asking, MESSAGES, RESPONSES) == ""
    assert sent(body, MESSAGES, RESPONSES)["input"][1]["content"][0]["text"] == f"{TOLD}\n[its result]\nx"
    items = [{"role": "user", "content": "hi"}, LISTED, CALL, {"role": "user", "content": "on"}]
    made = sent({"model": "m", "input": items, "tools": [TOOL]}, RESPONSES, MESSAGES)
    assert made["messages"][1] == {"role": "assistant", "content": [CALLED, CAME]}


@pytest.mark.parametrize("destination", [CHAT, MESSAGES, GEMINI, CONVERSE])
def test_a_call_that_the_client_was_asked_to_allow_is_told_in_words(destination: Api) -> None:
    asked = {"type": "mcp_approval_request", "id": "a", "name": "f", "server_label": "docs", "arguments": "{}"}
    said = {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True}
    no = said | {"approve": False, "reason": "never"}
    for item, told in ((said, "[allowed it]"), (no, "[did not allow it: never]")):
        items = [{"role": "user", "content": "hi"}, asked, item]
        body = json.dumps(sent({"model": "m", "input": items}, RESPONSES, destination))
        assert "[asked to be allowed to call f of the server docs with {}]" in body
        assert told in body

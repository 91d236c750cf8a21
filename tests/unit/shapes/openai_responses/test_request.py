import pytest

from kinference.shapes.ir import (
    File,
    Image,
    Media,
    Reasoning,
    Refusal,
    Request,
    Role,
    Sealed,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from kinference.shapes.lost import Untranslatable
from kinference.shapes.openai_responses.request import parse_request
from kinference.shapes.scan import BadBody
from kinference.shapes.seals import sealed
from kinference.vocabulary import Api

PNG = "iVBORw0KGgoAAAANSUhEUg=="


def parse(given: object, **members: object) -> Request:
    return parse_request({"model": "m", "input": given, **members})


def test_a_string_is_the_users() -> None:
    request = parse("hi", instructions="s")
    assert (request.system, request.turns) == ((Text("s"),), (Turn(Role.USER, (Text("hi"),)),))


def test_what_the_assistant_did_in_one_go_is_joined_in_one_pass() -> None:
    """Joined item by item, this takes longer than pytest lets it."""
    done = [{"type": "reasoning", "encrypted_content": "e"}] * 200_000
    (turn,) = parse(done).turns
    assert (turn.role, len(turn.blocks)) == (Role.ASSISTANT, len(done))


def test_items_in_order() -> None:
    turns = parse(
        [
            {"role": "developer", "content": "s"},
            {"role": "user", "content": [{"type": "input_text", "text": "q"}]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "r"}]},
            {
                "role": "assistant",
                "content": [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "n"}],
            },
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "x"},
            {"type": "function_call_output", "call_id": "c1", "output": "r1"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "r2"}]},
            {"role": "system", "content": "late"},
        ]
    )
    assert turns.system == (Text("s"),)
    assert turns.turns == (
        Turn(Role.USER, (Text("q"),)),
        Turn(
            Role.ASSISTANT,
            (
                Reasoning("r"),
                Text("a"),
                Refusal("n"),
                ToolCall("c1", "f", "{}"),
                ToolCall("c2", "g", "x", is_free_form=True),
            ),
        ),
        Turn(Role.USER, (ToolResult("c1", (Text("r1"),)),)),
        Turn(Role.USER, (ToolResult("c2", (Text("r2"),)),)),
        Turn(Role.SYSTEM, (Text("late"),)),
    )


def test_images_and_files() -> None:
    parts = [
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "low"},
        {"type": "input_image", "file_id": "f1", "detail": "auto"},
        {"type": "input_file", "file_url": "https://x/y.pdf"},
        {"type": "input_file", "file_id": "f2"},
        {"type": "input_file", "filename": "n", "file_data": "data:application/pdf;base64,AAAA"},
        {"type": "input_file", "filename": "t", "file_data": "data:text/plain;base64,aGk="},
    ]
    assert parse([{"role": "user", "content": parts}]).turns[0].blocks == (
        Image(Media("image/png", PNG), "low"),
        Image(Media(file_id="f1"), "auto"),
        File(Media(url="https://x/y.pdf")),
        File(Media(file_id="f2")),
        File(Media("application/pdf", "AAAA"), "n"),
        File(Media(), "t", "hi"),
    )


def test_seals_of_ours_are_opened_and_others_kept_shut() -> None:
    issuer = Api.ANTHROPIC_MESSAGES
    summary = [{"type": "summary_text", "text": "r"}]
    items = [
        {"type": "reasoning", "summary": summary, "encrypted_content": sealed(Reasoning("r", "s", issuer))},
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"},
    ]
    assert parse(items).turns[0].blocks == (Reasoning("r", "s", issuer), Sealed("gAAAA", Api.OPENAI_RESPONSES))


@pytest.mark.parametrize("members", [{"previous_response_id": "r"}, {"conversation": "c"}, {"background": True}])
def test_what_a_provider_keeps_goes_nowhere_else(members: dict[str, object]) -> None:
    with pytest.raises(Untranslatable, match=next(iter(members))):
        parse("hi", **members)


@pytest.mark.parametrize(
    "given", [None, [], 7, [{"role": "robot"}], [7], [{"role": "user", "content": [{"type": "x"}]}]]
)
def test_what_cannot_be_read_is_named_by_its_place(given: object) -> None:
    with pytest.raises(BadBody, match="input"):
        parse(given)


def test_calls_within_namespaces_and_calls_for_more_tools() -> None:
    group = {"type": "namespace", "name": "crm", "tools": [{"type": "function", "name": "get"}]}
    items = [
        {"role": "user", "content": "hi"},
        {"type": "tool_search_call", "call_id": "s", "execution": "client", "arguments": {"query": "q"}},
        {"type": "tool_search_output", "call_id": "s", "execution": "client", "tools": [group]},
        {"type": "function_call", "call_id": "c", "namespace": "crm", "name": "get", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "ok"},
    ]
    request = parse(items, tools=[{"type": "tool_search", "execution": "client", "parameters": {}}])
    assert [tool.name for tool in request.tools] == ["tool_search", "crm__get"]
    assert [turn.blocks for turn in request.turns[1:]] == [
        (ToolCall("s", "tool_search", '{"query":"q"}'),),
        (ToolResult("s", (Text("Tools found: crm__get"),)),),
        (ToolCall("c", "crm__get", "{}"),),
        (ToolResult("c", (Text("ok"),)),),
    ]
    found = parse([{"type": "tool_search_output", "call_id": "s", "tools": []}])
    assert found.turns[0].blocks == (ToolResult("s", (Text("Tools found: none"),)),)


def test_a_search_for_tools_that_the_provider_made_needs_no_turn() -> None:
    items = [
        {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "f"}]},
        {"role": "developer", "content": "s"},
        {"role": "user", "content": "hi"},
        {"type": "tool_search_call", "execution": "server", "arguments": {}},
        {"type": "tool_search_output", "execution": "server", "tools": [{"type": "function", "name": "f"}]},
    ]
    request = parse(items)
    assert [tool.name for tool in request.tools] == ["f"]
    assert (request.system, len(request.turns)) == ((Text("s"),), 1)

from kinference.shapes.ir import Reasoning, ToolCall
from kinference.shapes.openai_responses.items import CallItem, Item, ReasoningItem, RefusalItem, TextItem


def life(item: Item, *pieces: str) -> list[str]:
    events = [*item.begun(), *(event for piece in pieces for event in item.grown(piece)), *item.done()]
    return [name.removeprefix("response.") for name, _ in events]


def test_the_life_of_a_text() -> None:
    assert life(TextItem("1"), "a") == [
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    assert life(RefusalItem("1"), "a")[2:4] == ["refusal.delta", "refusal.done"]


def test_the_life_of_a_call() -> None:
    assert life(CallItem("1", ToolCall("c", "f", "")), "{", "}") == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]


def test_a_call_without_arguments_has_an_empty_object_and_a_free_form_one_nothing() -> None:
    call, free = CallItem("1", ToolCall("c", "f", "")), CallItem("1", ToolCall("c", "g", "", is_free_form=True))
    assert call.done()[0][1]["arguments"] == "{}"
    assert free.done()[0] == ("response.custom_tool_call_input.done", {"item_id": "fc_1", "input": ""})
    assert free.whole()["type"] == "custom_tool_call"


def test_the_life_of_a_thought() -> None:
    assert life(ReasoningItem("1"), "a", "b") == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
    ]
    assert life(ReasoningItem("1")) == ["output_item.added", "output_item.done"]
    unsigned = ReasoningItem("1")
    unsigned.seal(Reasoning(""))
    assert "encrypted_content" not in unsigned.whole()


def test_the_life_of_a_call_for_more_tools() -> None:
    item = CallItem("1", ToolCall("s", "tool_search", "", form="tool_search"))
    assert life(item, '{"query":', '"q"}') == ["output_item.added", "output_item.done"]
    assert item.whole() == {
        "type": "tool_search_call",
        "id": "fc_1",
        "call_id": "s",
        "execution": "client",
        "arguments": {"query": "q"},
        "status": "completed",
    }


def test_a_call_within_a_namespace_has_it_apart() -> None:
    whole = CallItem("1", ToolCall("c", "get", "{}", namespace="crm")).whole()
    assert (whole["type"], whole["namespace"], whole["name"]) == ("function_call", "crm", "get")
    assert "namespace" not in CallItem("1", ToolCall("c", "get", "{}")).whole()

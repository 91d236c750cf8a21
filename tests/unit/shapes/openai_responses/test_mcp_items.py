from kinference.shapes.ir import ServerCall, ServerTools
from kinference.shapes.openai_responses.mcp_items import ServerCallItem, ServerToolsItem


def test_a_call_is_opened_filled_and_closed() -> None:
    item = ServerCallItem("1", ServerCall("", "docs", "find", "", "no", has_failed=True))
    events = [*item.begun(), *item.grown("x"), *item.done()]
    assert [name.removeprefix("response.") for name, _ in events] == [
        "output_item.added",
        "mcp_call.in_progress",
        "mcp_call_arguments.delta",
        "mcp_call_arguments.done",
        "mcp_call.failed",
        "output_item.done",
    ]
    begun, whole = events[0][1]["item"], events[-1][1]["item"]
    assert (begun["status"], begun["arguments"], begun["error"]) == ("in_progress", "", None)
    assert (whole["status"], whole["arguments"], whole["output"]) == ("failed", "{}", None)
    assert begun["id"] == whole["id"] == events[1][1]["item_id"] == "mcp_1"


def test_what_a_server_offers_comes_with_its_end() -> None:
    item = ServerToolsItem("1", ServerTools("docs", ({"name": "find", "input_schema": {}},)))
    (_, begun), started, *_ = events = [*item.begun(), *item.grown("x"), *item.done()]
    assert begun["item"]["tools"] == []
    assert started == ("response.mcp_list_tools.in_progress", {"item_id": "mcpl_1"})
    assert events[-2] == ("response.mcp_list_tools.completed", {"item_id": "mcpl_1"})
    assert events[-1][1]["item"] == item.whole()
    assert item.whole()["tools"] == [{"name": "find", "input_schema": {}}]

import re

import pytest

from kinference.shapes.answers import ArgumentsPiece, Finish, Finished, Piece, ToolBegun
from kinference.shapes.ir import Request, Role, Text, Tool, ToolCall, ToolChoice, ToolMode, ToolResult, Turn
from kinference.shapes.tooling import INPUT, Tooling, ToolRestorer, fit_tools, safe_id, whole_name

LONG = "x" * 65
END = Finished(Finish.TOOLS)


def test_what_fits_stays_the_very_same() -> None:
    request = Request(tools=(Tool("f"),), turns=(Turn(Role.ASSISTANT, (ToolCall("c", "f", "{}"),)),))
    assert fit_tools(request, wraps=True)[0] is request


@pytest.mark.parametrize("name", ["a.b", "functions.f:0", LONG, "é", "a b"])
def test_any_name_becomes_one_that_every_api_takes(name: str) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", safe_id(name))
    assert safe_id(name) == safe_id(name) != name


@pytest.mark.parametrize("name", ["3d_render", "-x", "9", "1.b"])
def test_a_tools_name_begins_as_one_of_googles_has_to(name: str) -> None:
    fitted, tooling = fit_tools(Request(tools=(Tool(name), Tool(f"_{name}"))), wraps=False)
    safe, other = (tool.name for tool in fitted.tools)
    assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", safe)
    assert safe != other
    assert ToolRestorer(tooling).call(ToolCall("c", safe, "{}")) == ToolCall("c", name, "{}")


def test_names_that_look_alike_stay_apart() -> None:
    assert len({safe_id(name) for name in ("a.b", "a b", "a_b", "a:b")}) == 4


def test_names_are_changed_everywhere_and_changed_back() -> None:
    request = Request(
        tools=(Tool("a.b"), Tool("ok")),
        tool_choice=ToolChoice(ToolMode.REQUIRED, ("a.b",)),
        turns=(
            Turn(Role.ASSISTANT, (Text("t"), ToolCall("c:1", "a.b", "{}"))),
            Turn(Role.USER, (ToolResult("c:1"),)),
        ),
    )
    fitted, tooling = fit_tools(request, wraps=True)
    safe = safe_id("a.b")
    assert [tool.name for tool in fitted.tools] == [safe, "ok"]
    assert fitted.tool_choice == ToolChoice(ToolMode.REQUIRED, (safe,))
    assert fitted.turns[0].blocks[1] == ToolCall(safe_id("c:1"), safe, "{}")
    assert fitted.turns[1].blocks == (ToolResult(safe_id("c:1")),)
    restorer = ToolRestorer(tooling)
    assert restorer.call(ToolCall("x", safe, "{}")) == ToolCall("x", "a.b", "{}")
    assert list(restorer.pieces([ToolBegun(0, "x", safe), ToolBegun(1, "y", "ok")])) == [
        ToolBegun(0, "x", "a.b"),
        ToolBegun(1, "y", "ok"),
    ]


def test_free_form_tools_become_functions_and_their_calls_text_again() -> None:
    call = ToolCall("c", "sql", "SELECT 1", is_free_form=True)
    request = Request(tools=(Tool("sql", is_free_form=True),), turns=(Turn(Role.ASSISTANT, (call,)),))
    fitted, tooling = fit_tools(request, wraps=True)
    assert fitted.tools == (Tool("sql", schema=INPUT),)
    wrapped = ToolCall("c", "sql", '{"input":"SELECT 1"}')
    assert fitted.turns[0].blocks == (wrapped,)
    restorer = ToolRestorer(tooling)
    assert restorer.call(wrapped) == call
    pieces: list[Piece] = [
        ToolBegun(0, "c", "sql"),
        ArgumentsPiece(0, '{"input":'),
        ArgumentsPiece(0, '"SELECT 1"}'),
        END,
    ]
    assert list(restorer.pieces(pieces)) == [
        ToolBegun(0, "c", "sql", is_free_form=True),
        ArgumentsPiece(0, "SELECT 1"),
        END,
    ]


def test_free_form_tools_stay_where_there_are_some() -> None:
    request = Request(tools=(Tool("sql", is_free_form=True),))
    assert fit_tools(request, wraps=False) == (request, Tooling())


def test_arguments_that_were_not_wrapped_are_left_alone() -> None:
    restorer = ToolRestorer(Tooling(free_form=frozenset({"sql"})))
    assert restorer.call(ToolCall("c", "sql", "5")) == ToolCall("c", "sql", "5", is_free_form=True)


def test_a_tool_in_a_namespace_is_called_by_one_name_and_known_by_both() -> None:
    assert whole_name("crm", "get") == "crm__get"
    assert whole_name("mcp__crm__", "get") == "mcp__crm__get"
    assert whole_name("", "get") == "get"
    long = "n" * 60
    tools = (Tool("crm__get", namespace="crm"), Tool(f"{long}__get.it", namespace=long), Tool("crm__other"))
    fitted, tooling = fit_tools(Request(tools=tools), wraps=True)
    assert [tool.name for tool in fitted.tools] == ["crm__get", safe_id(f"{long}__get.it"), "crm__other"]
    restorer = ToolRestorer(tooling)
    assert restorer.call(ToolCall("c", "crm__get", "{}")) == ToolCall("c", "get", "{}", namespace="crm")
    assert restorer.call(ToolCall("c", fitted.tools[1].name, "{}")) == ToolCall("c", "get.it", "{}", namespace=long)
    assert restorer.call(ToolCall("c", "crm__other", "{}")) == ToolCall("c", "crm__other", "{}")
    [begun] = restorer.pieces([ToolBegun(0, "c", "crm__get")])
    assert begun == ToolBegun(0, "c", "get", namespace="crm")


def test_a_free_form_tool_may_be_in_a_namespace() -> None:
    tool = Tool("sh__run", namespace="sh", is_free_form=True)
    restorer = ToolRestorer(fit_tools(Request(tools=(tool,)), wraps=True)[1])
    call = restorer.call(ToolCall("c", "sh__run", '{"input":"ls"}'))
    assert call == ToolCall("c", "run", "ls", is_free_form=True, namespace="sh")


def test_a_call_for_more_tools_is_known_as_one() -> None:
    restorer = ToolRestorer(fit_tools(Request(tools=(Tool("tool_search", form="tool_search"),)), wraps=True)[1])
    assert restorer.call(ToolCall("c", "tool_search", "{}")) == ToolCall("c", "tool_search", "{}", form="tool_search")


def test_an_id_is_no_longer_than_it_may_be_and_its_result_has_the_same() -> None:
    long = "chatcmpl-tool-" + "0" * 32
    turns = (
        Turn(Role.ASSISTANT, (ToolCall(long, "f", "{}"),)),
        Turn(Role.USER, (ToolResult(long),)),
    )
    fitted, _ = fit_tools(Request(turns=turns), wraps=True, id_max=40)
    (call,), (result,) = (turn.blocks for turn in fitted.turns)
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert (len(call.id), call.id) == (40, result.id)
    assert fit_tools(Request(turns=turns), wraps=True)[0].turns == turns

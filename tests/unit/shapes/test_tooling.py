import re

import pytest

from kinference.shapes.answers import ArgumentsPiece, Finish, Finished, Piece, ToolBegun
from kinference.shapes.ir import Request, Role, Text, Tool, ToolCall, ToolChoice, ToolMode, ToolResult, Turn
from kinference.shapes.tooling import INPUT, Tooling, ToolRestorer, fit_tools, safe_id

LONG = "x" * 65
END = Finished(Finish.TOOLS)


def test_what_fits_stays_the_very_same() -> None:
    request = Request(tools=(Tool("f"),), turns=(Turn(Role.ASSISTANT, (ToolCall("c", "f", "{}"),)),))
    assert fit_tools(request, wraps=True)[0] is request


@pytest.mark.parametrize("name", ["a.b", "functions.f:0", LONG, "é", "a b"])
def test_any_name_becomes_one_that_every_api_takes(name: str) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", safe_id(name))
    assert safe_id(name) == safe_id(name) != name


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

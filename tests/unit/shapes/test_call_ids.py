from typing import Any

from kinference.shapes.call_ids import distinct
from kinference.shapes.ir import Role, Text, ToolCall, ToolResult, Turn
from tests.unit.shapes.conversions import CHAT, CONVERSE, HI, MESSAGES, TOOL, sent


def calls(*ids: str) -> Turn:
    return Turn(Role.ASSISTANT, (Text("t"), *(ToolCall(one, "f", "{}") for one in ids)))


def results(*ids: str) -> Turn:
    return Turn(Role.USER, tuple(ToolResult(one) for one in ids))


def ids_of(*turns: Turn) -> list[list[str]]:
    return [[block.id for block in turn.blocks if isinstance(block, ToolCall | ToolResult)] for turn in distinct(turns)]


def test_ids_that_are_distinct_stay_the_very_same() -> None:
    turns = (calls("a", "b"), results("b", "a"), calls("c"), results("c"))
    assert distinct(turns) is turns


def test_a_call_that_is_counted_anew_in_each_turn_has_its_own_result() -> None:
    turns = (calls("0"), results("0"), calls("0", "1"), results("1", "0"), calls("1"), results("1"))
    assert ids_of(*turns) == [["0"], ["0"], ["0.2", "1"], ["1", "0.2"], ["1.2"], ["1.2"]]


def test_calls_beside_each_other_under_one_id_have_their_results_in_order() -> None:
    assert ids_of(calls("x", "x"), results("x"), results("x", "x")) == [["x", "x.2"], ["x"], ["x.2", "x.2"]]


def test_a_conversation_that_grows_keeps_its_beginning() -> None:
    turns = (calls("0"), results("0"), calls("0"), results("0"), calls("0.2"), results("0.2"))
    for length in range(1, len(turns)):
        assert ids_of(*turns)[:length] == ids_of(*turns[:length])


def test_b4_anthropic_and_bedrock_get_no_id_twice() -> None:
    call = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    step: Any = [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_0", "content": "r"},
    ]
    body = {"model": "m", "messages": [*HI, *step, *step], "tools": [TOOL]}
    turns = sent(body, CHAT, MESSAGES)["messages"]
    assert [turns[at]["content"][0]["id"] for at in (1, 3)] == [turns[at]["content"][0]["tool_use_id"] for at in (2, 4)]
    assert turns[1]["content"][0]["id"] != turns[3]["content"][0]["id"]
    other = sent(body, CHAT, CONVERSE)["messages"]
    assert len({turn["content"][0]["toolUse"]["toolUseId"] for turn in other if turn["role"] == "assistant"}) == 2

from collections import Counter
from typing import Any, ClassVar

import pytest

from kinference.shapes.alternate import alternating, answered, orphans
from kinference.shapes.ir import Block, Image, Media, Reasoning, Refusal, Role, Text, ToolCall, ToolResult, Turn
from kinference.shapes.scan import BadBody
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import CHAT, CONVERSE, GEMINI, MESSAGES, RESPONSES, planned, sent

CALL = ToolCall("c", "f", "{}")
RESULT = ToolResult("c", (Text("r"),))
MISSING = ToolResult("c", (Text("no result was recorded"),), is_error=True)


def user(*blocks: Block) -> Turn:
    return Turn(Role.USER, blocks)


def assistant(*blocks: Block) -> Turn:
    return Turn(Role.ASSISTANT, blocks)


def test_turns_of_one_speaker_become_one() -> None:
    turns = (user(Text("a")), user(Text("b")), assistant(Text("c")), assistant(), assistant(Text("d")))
    assert alternating(turns) == (user(Text("a"), Text("b")), assistant(Text("c"), Text("d")))


def test_results_come_first_and_in_the_order_of_the_calls() -> None:
    other = ToolCall("d", "g", "{}")
    answers = user(Text("go"), ToolResult("d"), RESULT)
    assert alternating((user(Text("a")), assistant(CALL, other), answers))[-1] == user(
        RESULT, ToolResult("d"), Text("go")
    )


def test_operators_words_between_a_call_and_its_result_come_after_the_result() -> None:
    turns = (user(Text("a")), assistant(CALL), Turn(Role.SYSTEM, (Text("s"),)), user(RESULT))
    assert alternating(turns)[-1] == user(RESULT, Text("<operator-note>\ns\n</operator-note>"))


def test_e2_a_call_without_a_result_gets_one_before_what_was_said() -> None:
    turns = (user(Text("a")), assistant(CALL), user(Text("go on")))
    assert alternating(turns)[-1] == user(MISSING, Text("go on"))
    assert list(orphans(turns)) == ["c"]


def test_e2_a_result_without_a_call_is_what_the_user_says() -> None:
    turns = (user(Text("a")), assistant(Text("b")), user(RESULT))
    assert alternating(turns)[-1] == user(Text("[tool result c]"), Text("r"))
    assert list(orphans(turns)) == ["c"]


def test_of_two_results_the_first_counts() -> None:
    turns = (user(Text("a")), assistant(CALL), user(RESULT, ToolResult("c", (Text("again"),))))
    assert alternating(turns)[-1] == user(RESULT)
    assert list(orphans(turns)) == ["c"]


def test_e2_a_destination_that_takes_turns_as_they_come_has_every_call_answered_too() -> None:
    other = ToolCall("d", "g", "{}")
    missing = ToolResult("d", MISSING.content, is_error=True)
    again = ToolResult("c", (Text("again"),))
    system = Turn(Role.SYSTEM, (Text("s"),))
    begun = (user(Text("a")), assistant(CALL, other))
    for rest, mended in (
        ((user(Text("go on")),), (user(MISSING, missing, Text("go on")),)),
        ((user(RESULT), assistant(Text("b"))), (user(RESULT), user(missing), assistant(Text("b")))),
        ((user(RESULT, Text("go on")),), (user(RESULT, missing, Text("go on")),)),
        ((user(RESULT), system, user(ToolResult("d"))), (user(RESULT), system, user(ToolResult("d")))),
        ((user(RESULT, again),), (user(RESULT, missing),)),
        ((user(ToolResult("x", (Text("r"),))),), (user(MISSING, missing, Text("[tool result x]"), Text("r")),)),
        ((), ()),
    ):
        assert tuple(answered((*begun, *rest))) == (*begun, *mended)


def test_a_call_that_is_still_to_be_answered_is_no_orphan() -> None:
    turns = (user(Text("a")), assistant(CALL))
    assert alternating(turns) == turns
    assert list(orphans(turns)) == []


def test_results_in_turns_of_their_own_are_no_orphans() -> None:
    turns = (user(Text("a")), assistant(CALL, ToolCall("d", "g", "")), user(RESULT), user(ToolResult("d")))
    assert list(orphans(turns)) == []


@pytest.mark.parametrize("turns", [(), (user(Text("")),), (assistant(Text("x")),)])
def test_there_must_be_a_user_first(turns: tuple[Turn, ...]) -> None:
    with pytest.raises(BadBody, match="messages"):
        alternating(turns)


@pytest.mark.parametrize(
    "contents",
    [
        [{"role": "user", "parts": [{"functionCall": {"name": "f", "args": {}}}]}],
        [{"role": "model", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}],
        [{"role": "model", "parts": [{"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0x"}}]}],
    ],
)
def test_what_somebody_else_would_have_had_to_say_is_refused_and_not_lost(contents: Any) -> None:
    for destination in (CHAT, RESPONSES, MESSAGES, CONVERSE):
        with pytest.raises(BadBody):
            planned({"contents": [{"parts": [{"text": "hi"}]}, *contents]}, GEMINI, destination)


class Looked(str):
    """An id that counts how often one is looked at."""

    __slots__ = ()
    times: ClassVar[Counter[str]] = Counter()

    def __eq__(self, other: object) -> bool:
        self.times["eq"] += 1
        return super().__eq__(other)

    def __hash__(self) -> int:
        self.times["hash"] += 1
        return super().__hash__()


def test_results_are_told_from_orphans_in_steps_as_many_as_there_are_calls() -> None:
    many = 400
    ids = [Looked(number) for number in range(many)]
    calls = assistant(*(ToolCall(one, "f", "{}") for one in ids))
    results = [ToolResult(one, (Text("r"),)) for one in reversed(ids)]
    apart = (user(Text("a")), calls, *map(user, results))
    together = (user(Text("a")), calls, user(*results))
    for turns in (apart, together):
        Looked.times.clear()
        assert not list(orphans(turns))
        assert len(list(answered(turns))) == len(turns)
        assert Looked.times.total() < 20 * many


def test_words_come_before_the_calls_of_their_turn() -> None:
    """Bedrock says of others that their results are missing (litellm#24361)."""
    thought, other = Reasoning("r", "s", Api.ANTHROPIC_MESSAGES), ToolCall("d", "g", "{}")
    turns = (user(Text("a")), assistant(thought, CALL, Text("b"), other, Refusal("n")), user(RESULT, ToolResult("d")))
    assert alternating(turns)[1] == assistant(thought, Text("b"), Refusal("n"), CALL, other)
    in_order = (user(Text("a")), assistant(Text("b"), CALL, other), user(RESULT, ToolResult("d")))
    assert alternating(in_order) is in_order


def test_a_text_of_nothing_but_white_space_is_none() -> None:
    assert alternating((user(Text(" \n"), Text("a")), assistant(Text("\n")), user(Text("b")))) == (
        user(Text("a"), Text("b")),
    )
    with pytest.raises(BadBody, match="no user message"):
        alternating((user(Text(" ")),))


def test_system_text_of_nothing_but_white_space_is_none() -> None:
    messages = [{"role": "system", "content": " "}, {"role": "user", "content": "hi"}]
    for destination in (MESSAGES, CONVERSE):
        assert "system" not in sent({"model": "m", "messages": messages}, CHAT, destination)


S, NOTE = Turn(Role.SYSTEM, (Text("s"),)), Text("<operator-note>\ns\n</operator-note>")
A, B = user(Text("a")), assistant(Text("b"))
R = user(RESULT)


@pytest.mark.parametrize(
    ("turns", "placed"),
    [
        ((A, B, S, A), (A, B, A, S)),
        ((A, S, A, B), (user(Text("a"), Text("a")), S, B)),
        ((A, S, S), (A, Turn(Role.SYSTEM, (Text("s"), Text("s"))))),
        ((A, assistant(CALL), S, R), (A, assistant(CALL), R, S)),
        ((A, B, S), (A, B, user(NOTE))),
        ((A, B, S, B, A), (A, B, user(NOTE), B, A)),
        ((A, assistant(CALL), S), (A, assistant(CALL), user(MISSING, NOTE))),
        ((A, S, assistant(Text(" ")), A), (user(Text("a"), Text("a")), S)),
        (
            (A, Turn(Role.SYSTEM, (Text("s"), Image(Media("image/png", "aa"))))),
            (user(Text("a"), Image(Media("image/png", "aa"))), S),
        ),
    ],
)
def test_operators_words_are_a_turn_of_their_own_where_they_may_be(
    turns: tuple[Turn, ...], placed: tuple[Turn, ...]
) -> None:
    """Right after the user's, last or before the assistant's, and never two in a row."""
    assert alternating(turns, takes_system=True) == placed

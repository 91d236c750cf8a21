from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kinference.shapes.alternate import alternating, check_speakers, orphans
from kinference.shapes.call_ids import distinct
from kinference.shapes.ir import (
    Block,
    CacheMark,
    Image,
    Media,
    Request,
    Role,
    Simple,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    is_simple,
)
from kinference.shapes.loss import uses
from kinference.shapes.scan import BadBody
from kinference.shapes.simple import simple
from kinference.shapes.tooling import ID_MAX, fit_tools
from kinference.vocabulary import Api

ASKED = Turn(Role.USER, (Text("a"),))
CALLED = Turn(Role.ASSISTANT, (Text("b"), ToolCall("1", "f", "{}"), ToolCall("2", "g", "{}")))
RESULTS = (ToolResult("1", (Text("r"),)), ToolResult("2", (Text(""),)))
FOUND = Turn(Role.USER, RESULTS)
MARK = CacheMark()


def user(*blocks: Block) -> Turn:
    return Turn(Role.USER, blocks)


def assistant(*blocks: Block) -> Turn:
    return Turn(Role.ASSISTANT, blocks)


@pytest.mark.parametrize(
    "turns",
    [
        (ASKED,),
        (ASKED, assistant(Text("b"))),
        (ASKED, CALLED),
        (ASKED, CALLED, FOUND),
        (ASKED, CALLED, user(*RESULTS, Text("c")), assistant(ToolCall("3", "f", "{}"))),
    ],
)
def test_words_and_calls_with_their_results_are_simple(turns: tuple[Turn, ...]) -> None:
    assert simple(turns) == Simple(turns, alternates=True)


def test_results_may_come_in_turns_of_their_own() -> None:
    turns = (ASKED, CALLED, user(RESULTS[0]), user(RESULTS[1]), assistant(Text("c")))
    assert simple(turns) == Simple(turns, alternates=False)


@pytest.mark.parametrize(
    "turns",
    [
        (),
        (user(),),
        (Turn(Role.SYSTEM, (Text("s"),)), ASKED),
        (Turn(Role.USER, (Text("a"),), name="n"),),
        (user(Text(" \n")),),
        (user(Text("a", MARK)),),
        (user(Image(Media(url="http://a"))),),
        (ASKED, assistant(Text("b", MARK))),
        (ASKED, assistant(ToolCall("1", "f", "{}"), Text("b"))),
        (ASKED, assistant(ToolCall("1", "f", "x", is_free_form=True))),
        (ASKED, assistant(ToolCall("1", "f", "{}", cache=MARK))),
        (ASKED, assistant(ToolCall("1", "f.g", "{}"))),
        (ASKED, assistant(ToolCall("1", "9f", "{}"))),
        (ASKED, assistant(ToolCall("1.2", "f", "{}"))),
        (ASKED, assistant(ToolCall("1" * (ID_MAX + 1), "f", "{}"))),
        (ASKED, assistant(ToolCall("1", "f", "{}"), ToolCall("1", "f", "{}"))),
        (ASKED, assistant(RESULTS[0])),
        (user(ToolCall("1", "f", "{}")),),
        (user(RESULTS[0]),),
        (ASKED, CALLED, user(RESULTS[0])),
        (ASKED, CALLED, user(RESULTS[0], Text("c"))),
        (ASKED, CALLED, user(RESULTS[0]), assistant(Text("c"))),
        (ASKED, CALLED, user(Text("c"), *RESULTS)),
        (ASKED, CALLED, user(*reversed(RESULTS))),
        (ASKED, CALLED, user(*RESULTS, RESULTS[0])),
        (ASKED, CALLED, user(ToolResult("1", is_error=True), RESULTS[1])),
        (ASKED, CALLED, user(ToolResult("1", cache=MARK), RESULTS[1])),
        (ASKED, CALLED, user(ToolResult("1", (Text("r", MARK),)), RESULTS[1])),
        (ASKED, CALLED, user(ToolResult("1", (Image(Media(url="http://a")),)), RESULTS[1])),
    ],
)
def test_anything_else_is_not(turns: tuple[Turn, ...]) -> None:
    assert simple(turns) is None


def test_it_says_nothing_of_turns_that_took_their_place() -> None:
    request = Request(turns=(ASKED,), simple=simple((ASKED,)))
    assert not is_simple(request)  # others, if equal ones
    request = replace(request, simple=simple(request.turns))
    assert is_simple(request)
    assert not is_simple(replace(request, turns=(ASKED, CALLED)))


CALLS = st.builds(
    ToolCall, st.sampled_from(["1", "2", "3", "x" * 41]), st.sampled_from(["f", "9", "g.h"]), st.just("{}")
)
TEXTS = st.builds(Text, st.sampled_from(["a", "a", " ", ""]), st.sampled_from([None, None, None, MARK]))
FOUNDS = st.builds(ToolResult, st.sampled_from(["1", "2", "3"]), st.lists(TEXTS, max_size=1).map(tuple))


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Turn, ...]:
    return tuple(_turns(draw))


def _turns(draw: st.DrawFn) -> Iterator[Turn]:
    for at in range(draw(st.integers(1, 6))):
        role = draw(st.sampled_from([(Role.USER, Role.ASSISTANT)[at % 2]] * 8 + list(Role)))
        kinds: st.SearchStrategy[Block] = TEXTS | (CALLS if role is Role.ASSISTANT else FOUNDS)
        yield Turn(role, tuple(draw(st.lists(kinds, max_size=3))))


@given(conversations())
def test_who_looks_through_simple_ones_finds_nothing(turns: tuple[Turn, ...]) -> None:
    seen = simple(turns)
    if seen is None:
        return
    check_speakers(turns)
    assert distinct(turns) is turns
    assert not list(orphans(turns))
    request = Request(turns=turns)
    for target in (Api.OPENAI_CHAT, Api.ANTHROPIC_MESSAGES):
        assert list(uses(request, target)) == list(uses(replace(request, simple=seen), target))
    assert fit_tools(request, wraps=True, id_max=ID_MAX)[0] is request
    try:
        is_in_order = alternating(turns) is turns
    except BadBody:
        is_in_order = False
    assert is_in_order is seen.alternates

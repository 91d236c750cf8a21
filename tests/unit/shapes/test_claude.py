import pytest

from kinference.shapes.claude import (
    budget,
    constrain,
    effort_of,
    generation,
    is_adaptive,
    misses,
    output_cap,
    refuses_forced_tools,
)
from kinference.shapes.concepts import Concept
from kinference.shapes.ir import (
    Effort,
    Reasoning,
    Request,
    Role,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolMode,
    ToolResult,
    Turn,
)
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import CHAT, HI, MESSAGES, sent, warnings

OLD, NEW = "claude-sonnet-4-5-20250929", "claude-opus-4-7"
THINKS = Thinking(Effort.HIGH)


@pytest.mark.parametrize(
    ("model", "version"),
    [
        (OLD, (4, 5)),
        (NEW, (4, 7)),
        ("claude-3-5-sonnet-20241022", (3, 5)),
        ("claude-sonnet-4-20250514", (4, 0)),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", (4, 5)),
        ("claude-fable-5", (5, 0)),
        ("claude-latest", (99, 0)),
    ],
)
def test_generations(model: str, version: tuple[int, int]) -> None:
    assert generation(model) == version
    assert is_adaptive(model) == (version >= (4, 6))


@pytest.mark.parametrize(
    ("sampling", "dropped"),
    [
        (Sampling(temperature=1, top_p=1), ()),
        (Sampling(temperature=0.5), (Concept.TEMPERATURE,)),
        (Sampling(top_p=0.5, top_k=3), (Concept.TOP_P, Concept.TOP_K)),
    ],
)
def test_newer_models_are_not_sampled(sampling: Sampling, dropped: tuple[Concept, ...]) -> None:
    request, told = constrain(Request(model=NEW, sampling=sampling))
    assert (request.sampling, told) == (Sampling(), dropped)


def test_older_models_take_either_temperature_or_top_p() -> None:
    request, told = constrain(Request(model=OLD, sampling=Sampling(temperature=0.5, top_p=0.5)))
    assert (request.sampling, told) == (Sampling(temperature=0.5), (Concept.TOP_P,))
    assert constrain(Request(model=OLD, sampling=Sampling(top_p=0.5)))[1] == ()


@pytest.mark.parametrize(("cap", "tokens"), [(None, 4096), (9000, 4096), (2000, 1999)])
def test_thinking_leaves_room_for_the_answer(cap: int | None, tokens: int) -> None:
    assert budget(Request(model=OLD, thinking=THINKS, max_tokens=cap)) == tokens


@pytest.mark.parametrize(
    "request_",
    [
        Request(model=OLD, thinking=THINKS, max_tokens=1024),
        Request(model=NEW, thinking=THINKS, tools=(Tool("f"),), tool_choice=ToolChoice(ToolMode.REQUIRED)),
    ],
)
def test_no_thinking_where_it_is_refused(request_: Request) -> None:
    request, told = constrain(request_)
    assert (request.thinking, told) == (None, (Concept.THINKING,))


@pytest.mark.parametrize(("issuer", "is_kept"), [(Api.ANTHROPIC_MESSAGES, True), (None, False)])
def test_a_call_that_is_being_answered_must_come_with_its_thoughts(issuer: Api | None, is_kept: bool) -> None:
    call = Turn(Role.ASSISTANT, (Reasoning("r", "s", issuer), ToolCall("c", "f", "{}")))
    turns = (Turn(Role.USER, (Text("x"),)), call, Turn(Role.USER, (ToolResult("c"),)))
    assert (constrain(Request(model=NEW, thinking=THINKS, turns=turns))[0].thinking is not None) == is_kept


@pytest.mark.parametrize(
    ("model", "cap"),
    [
        ("claude-3-opus-20240229", 4096),
        ("claude-3-haiku-20240307", 4096),
        ("claude-3-5-sonnet-20241022", 8192),
        ("anthropic.claude-3-7-sonnet-20250219-v1:0", 64_000),
        ("claude-opus-4-1-20250805", 32_000),
        ("claude-sonnet-4-20250514", 64_000),
        ("claude-opus-4-5", 64_000),
        ("claude-opus-5-5", 64_000),
        ("tiny", None),
    ],
)
def test_f1_a_model_writes_no_more_than_its_generation(model: str, cap: int | None) -> None:
    assert output_cap(model) == cap


def test_f1_without_a_cap_the_models_own_is_asked_for_and_told() -> None:
    body = {"model": "m", "messages": HI}
    assert sent(body, CHAT, MESSAGES, model="claude-sonnet-4-5")["max_tokens"] == 64_000
    assert warnings(body, CHAT, MESSAGES, model="claude-3-5-haiku-20241022") == "assumed=max_tokens:8192"
    assert sent(body, CHAT, MESSAGES, model="tiny")["max_tokens"] == 8192


def test_more_than_an_older_model_writes_is_brought_into_its_range() -> None:
    body = {"model": "m", "messages": HI, "max_tokens": 20_000}
    assert sent(body, CHAT, MESSAGES, model="claude-3-5-haiku-20241022")["max_tokens"] == 8192
    told = warnings(body, CHAT, MESSAGES, model="claude-3-5-haiku-20241022")
    assert told == "clamped=max_tokens:20000->8192"
    assert sent({**body, "max_tokens": 100_000}, CHAT, MESSAGES, model="claude-opus-4-6")["max_tokens"] == 100_000


def test_efforts_by_claudes_own_words() -> None:
    def word(effort: Effort, model: str) -> str:
        return effort_of(Request(model=model, thinking=Thinking(effort)))

    assert word(Effort.MINIMAL, NEW) == "low"
    assert (word(Effort.XHIGH, NEW), word(Effort.XHIGH, "claude-opus-4-6")) == ("xhigh", "high")
    assert word(Effort.MAX, "claude-opus-4-6") == "max"


def test_models_from_before_thinking_are_not_asked_to() -> None:
    request, told = constrain(Request(model="claude-3-5-haiku-20241022", max_tokens=9000, thinking=THINKS))
    assert (request.thinking, told) == (None, (Concept.THINKING,))


@pytest.mark.parametrize(
    ("model", "is_refused"),
    [
        ("claude-opus-5-5", True),
        ("claude-sonnet-5-5-20261001", True),
        ("anthropic.claude-fable-5-1-v1:0", True),
        ("claude-mythos-5", False),
        ("claude-opus-5", False),
        ("claude-haiku-5-5", False),
        ("tiny", False),
    ],
)
def test_the_newest_models_are_not_made_to_call(model: str, is_refused: bool) -> None:
    assert refuses_forced_tools(model) == is_refused


@pytest.mark.parametrize(
    ("model", "thinking", "told"),
    [
        ("claude-opus-4-6", Thinking(Effort.XHIGH), "xhigh->high"),
        ("claude-opus-4-7", Thinking(Effort.XHIGH), ""),
        ("claude-opus-4-7", Thinking(Effort.MINIMAL), ""),
        ("claude-sonnet-4-5", Thinking(Effort.MAX, 9000), "9000->4999"),
        ("claude-sonnet-4-5", Thinking(Effort.LOW), ""),
        ("claude-sonnet-4-5", Thinking(Effort.NONE), ""),
    ],
)
def test_what_a_model_thinks_less_is_told(model: str, thinking: Thinking, told: str) -> None:
    assert misses(Request(model=model, thinking=thinking, max_tokens=5000), thinking) == told


def test_a_call_whose_result_others_words_follow_is_being_answered_still() -> None:
    call = Turn(Role.ASSISTANT, (ToolCall("c", "f", "{}"),))
    turns = (Turn(Role.USER, (Text("x"),)), call, Turn(Role.USER, (ToolResult("c"),)), Turn(Role.SYSTEM, (Text("s"),)))
    assert constrain(Request(model=NEW, thinking=THINKS, turns=turns))[0].thinking is None
    done = (*turns, Turn(Role.ASSISTANT, (Text("a"),)), Turn(Role.USER, (Text("y"),)))
    assert constrain(Request(model=NEW, thinking=THINKS, turns=done))[0].thinking is not None

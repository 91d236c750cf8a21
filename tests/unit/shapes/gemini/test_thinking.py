import pytest

from kinference.shapes.gemini.thinking import generation, misses, refuses_penalties, thinking_config
from kinference.shapes.ir import Effort, Json, Thinking


@pytest.mark.parametrize(
    ("model", "thinking", "config"),
    [
        ("gemini-3-pro-preview", Thinking(Effort.NONE), {"thinkingLevel": "LOW"}),
        ("gemini-3-pro-preview", Thinking(Effort.MEDIUM), {"thinkingLevel": "HIGH"}),
        ("gemini-3.1-pro", Thinking(Effort.MEDIUM), {"thinkingLevel": "MEDIUM"}),
        ("gemini-3-flash", Thinking(Effort.MINIMAL), {"thinkingLevel": "MINIMAL"}),
        ("a-name-of-my-own", Thinking(Effort.MAX, is_shown=True), {"thinkingLevel": "HIGH", "includeThoughts": True}),
        ("gemini-2.5-pro", Thinking(Effort.NONE), {"thinkingBudget": 128}),
        ("gemini-2.5-pro", Thinking(Effort.MAX, 99_999), {"thinkingBudget": 32_768}),
        ("google/gemini-2.5-flash", Thinking(Effort.MAX, 31_999), {"thinkingBudget": 24_576}),
        ("gemini-2.5-flash-lite", Thinking(Effort.LOW, 100), {"thinkingBudget": 512}),
        ("gemini-2.5-flash-lite", Thinking(Effort.NONE), {"thinkingBudget": 0}),
        ("gemini-2.5-pro", Thinking(Effort.MINIMAL), {"thinkingBudget": 128}),
        ("gemini-2.5-flash", Thinking(Effort.MINIMAL), {"thinkingBudget": 1}),
        ("gemini-2.5-flash-lite", Thinking(Effort.MINIMAL), {"thinkingBudget": 512}),
        ("gemini-3.6-flash", Thinking(Effort.NONE), {"thinkingLevel": "MINIMAL"}),
        ("gemini-3.7-flash", Thinking(Effort.NONE), {"thinkingLevel": "LOW"}),
    ],
)
def test_a_model_is_asked_to_think_as_near_as_it_goes(model: str, thinking: Thinking, config: Json) -> None:
    assert thinking_config(model, thinking) == config


def test_a_name_without_a_version_is_of_the_newest_and_refuses_nothing() -> None:
    assert generation("mine") > generation("gemini-3.5-flash") > generation("gemini-3-pro") > (2, 5)
    assert refuses_penalties("gemini-3.5-flash")
    assert not refuses_penalties("gemini-3-flash")
    assert not refuses_penalties("mine")


@pytest.mark.parametrize(
    ("model", "effort", "told"),
    [
        ("gemini-3-pro", Effort.XHIGH, "xhigh->high"),
        ("gemini-3-pro", Effort.HIGH, ""),
        ("gemini-3-pro", Effort.NONE, "none->low"),
        ("gemini-3-flash", Effort.NONE, ""),
        ("gemini-2.5-pro", Effort.NONE, "none->low"),
        ("gemini-2.5-flash", Effort.NONE, ""),
        ("gemini-2.5-flash", Effort.MAX, ""),
    ],
)
def test_what_a_model_does_not_do_is_told(model: str, effort: Effort, told: str) -> None:
    assert misses(model, Thinking(effort)) == told

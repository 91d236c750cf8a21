from decimal import Decimal
from typing import Any

import pytest

from kinference.shapes.ir import Effort, Request, Sampling, Thinking
from kinference.shapes.reasoners import constrain, is_openais, nearest_effort, reasons
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import CHAT, HI, MESSAGES, RESPONSES, sent, warnings


@pytest.mark.parametrize(
    ("model", "it_does"),
    [
        ("o1", True),
        ("o4-mini-2025-04-16", True),
        ("gpt-5", True),
        ("gpt-5.1-codex", True),
        ("openai/gpt-10-mini", True),
        ("gpt-5-chat-latest", False),
        ("gpt-4o", False),
        ("gpt-oss-120b", False),
        ("olmo-1", False),
        ("foo1", False),
    ],
)
def test_a_name_tells_whether_a_model_reasons(model: str, it_does: bool) -> None:
    assert reasons(model) is it_does


@pytest.mark.parametrize("destination", [CHAT, RESPONSES])
def test_what_they_refuse_is_left_out_and_told_once(destination: Any) -> None:
    body = {"model": "m", "max_tokens": 99, "messages": HI, "temperature": 0.5, "top_p": 0.9, "stop_sequences": ["a"]}
    got = sent(body, MESSAGES, destination, "gpt-5")
    assert not got.keys() & {"temperature", "top_p", "stop"}
    lost = warnings(body, MESSAGES, destination, "gpt-5")
    assert sorted(lost.split(";")) == ["dropped=stop_sequences", "dropped=temperature", "dropped=top_p"]
    assert sent(body, MESSAGES, destination, "gpt-4o")["temperature"] == 0.5


def test_values_that_they_would_take_anyway_are_no_loss() -> None:
    sampling = Sampling(temperature=1, top_p=Decimal("1.0"), frequency_penalty=0)
    assert constrain(Request(sampling=sampling)) == (Request(), ())


def test_told_not_to_reason_they_take_all_of_it() -> None:
    request = Request(sampling=Sampling(temperature=0), thinking=Thinking(Effort.NONE))
    assert constrain(request) == (request, ())


@pytest.mark.parametrize(
    ("model", "nearest"),
    [
        # of none, minimal, low, medium, high, xhigh and max
        ("gpt-5", "minimal minimal low medium high high high"),
        ("openai/gpt-5-mini", "minimal minimal low medium high high high"),
        ("gpt-5.1", "none low low medium high high high"),
        ("gpt-5.1-codex", "low low low medium high high high"),
        ("gpt-5.1-codex-max", "low low low medium high xhigh xhigh"),
        ("gpt-5.4", "none low low medium high xhigh xhigh"),
        ("gpt-5.6", "none low low medium high xhigh max"),
        ("o4-mini", "low low low medium high high high"),
        ("gpt-oss-120b", "none low low medium high high high"),
        ("deployment", "none low low medium high high high"),
    ],
)
def test_a_model_is_asked_for_the_nearest_effort_that_it_takes(model: str, nearest: str) -> None:
    found = [nearest_effort(model, effort) for effort in Effort]
    assert [effort.word for effort in found if effort is not None] == nearest.split()


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1-mini", "gpt-3.5-turbo", "chatgpt-4o-latest", "gpt-5-chat-latest"])
def test_who_does_not_reason_is_asked_for_no_effort(model: str) -> None:
    assert nearest_effort(model, Effort.LOW) is None
    assert is_openais(model)


@pytest.mark.parametrize("model", ["gpt-oss-120b", "olmo-1", "o1x", "foo-gpt-4o", "claude", "llama-4"])
def test_other_makers_models_are_not_openais(model: str) -> None:
    assert not is_openais(model)


def test_the_cap_has_its_older_name_where_not_every_server_knows_the_newer() -> None:
    body = {"model": "m", "max_tokens": 99, "messages": HI}
    for destination, model, name in (
        (CHAT, "gpt-5", "max_completion_tokens"),
        (CHAT, "mistral-large", "max_tokens"),
        (Api.VERTEX_OPENAI, "google/gemini-3-pro", "max_tokens"),
        (Api.AZURE_OPENAI, "my-deployment", "max_completion_tokens"),
    ):
        got = sent(body, MESSAGES, destination, model)
        assert (got[name], {"max_tokens", "max_completion_tokens"} & got.keys()) == (99, {name})


@pytest.mark.parametrize(
    ("model", "effort", "asked", "lost"),
    [
        ("gpt-5.4", "low", "none", "clamped=reasoning:low->none"),
        ("gpt-5.4", None, None, ""),
        ("gpt-5.6-terra", "low", "none", "clamped=reasoning:low->none"),
        ("gpt-5.6-terra", None, "none", "clamped=reasoning:none"),
        ("gpt-5.6-terra", "none", "none", ""),
        ("gpt-5.2", "low", "low", ""),
        ("qwen3", "low", "low", ""),
    ],
)
def test_newer_models_call_tools_in_chat_without_reasoning_only(
    model: str, effort: str | None, asked: str | None, lost: str
) -> None:
    tool = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    body = {"model": "m", "input": "hi", "tools": [tool]} | ({"reasoning": {"effort": effort}} if effort else {})
    assert sent(body, RESPONSES, CHAT, model).get("reasoning_effort") == asked
    assert warnings(body, RESPONSES, CHAT, model) == lost
    plain = {key: value for key, value in body.items() if key != "tools"}
    assert sent(plain, RESPONSES, CHAT, model).get("reasoning_effort") == effort

from decimal import Decimal
from typing import Any

import pytest

from kinference.shapes.ir import Effort, Request, Sampling, Thinking
from kinference.shapes.reasoners import constrain, reasons
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
    body = {"model": "m", "max_tokens": 9, "messages": HI, "temperature": 0.5, "top_p": 0.9, "stop_sequences": ["a"]}
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

import json
from typing import Any

import pytest

from kinference.shapes.ir import Reasoning, Sealed
from kinference.shapes.seals import sealed, unsealed
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import CHAT, CONVERSE, GEMINI, HI, MESSAGES, RESPONSES, Stream, answered, data, sent

ISSUER = Api.ANTHROPIC_MESSAGES


@pytest.mark.parametrize("thought", [Reasoning("r", "s", ISSUER), Sealed("d", ISSUER)])
def test_a_seal_comes_back_as_its_issuer_gave_it(thought: Reasoning | Sealed) -> None:
    seal = sealed(thought)
    assert seal is not None
    assert unsealed(seal, "r") == thought


def test_what_nobody_signed_has_no_seal() -> None:
    assert sealed(Reasoning("r")) is None


@pytest.mark.parametrize("content", ["gAAAAAB", "kinference.", "kinference.é", "kinference.e30=", "kinference.W10="])
def test_a_seal_of_others_is_left_to_them(content: str) -> None:
    assert unsealed(content, "r") is None


SIGNED = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}
CALLS = {"candidates": [{"content": {"parts": [{"text": "a"}, SIGNED, {"functionCall": {"name": "g", "args": {}}}]}}]}


def sent_back(client: Api, said: Any) -> Any:
    """The parts that Gemini gets when a client says again what it was told."""
    if client is RESPONSES:
        return sent({"model": "m", "input": [*HI, *said]}, RESPONSES, GEMINI)["contents"][1]["parts"]
    return sent({"model": "m", "messages": [*HI, said]}, CHAT, GEMINI)["contents"][1]["parts"]


def check(parts: Any) -> None:
    assert parts[0] == {"text": "a"}
    first, second = parts[1:3]
    assert (first["functionCall"]["name"], first["thoughtSignature"]) == ("f", "c2ln")
    assert (second["functionCall"]["name"], "thoughtSignature" in second) == ("g", False)


def test_e10_geminis_signature_survives_a_client_of_another_api() -> None:
    check(sent_back(CHAT, answered(CALLS, CHAT, GEMINI)["choices"][0]["message"]))
    check(sent_back(RESPONSES, answered(CALLS, RESPONSES, GEMINI)["output"]))


def test_e10_geminis_signature_survives_a_stream() -> None:
    chat = Stream(CHAT, GEMINI).feed(data(CALLS, {"candidates": [{"finishReason": "STOP"}]})).end()
    deltas = [event["choices"][0]["delta"] for event in chat.events[:-2] if event["choices"]]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ()) if "id" in call]
    for call in calls:
        call["function"]["arguments"] = "{}"
    blocks = [block for delta in deltas for block in delta.get("thinking_blocks", ())]
    check(sent_back(CHAT, {"role": "assistant", "content": "a", "thinking_blocks": blocks, "tool_calls": calls}))
    stream = Stream(RESPONSES, GEMINI).feed(data(CALLS, {"candidates": [{"finishReason": "STOP"}]})).end()
    check(sent_back(RESPONSES, stream.events[-1]["response"]["output"]))


@pytest.mark.parametrize("destination", [MESSAGES, CONVERSE, RESPONSES])
def test_e10_geminis_signature_goes_to_nobody_else(destination: Api) -> None:
    said = answered(CALLS, CHAT, GEMINI)["choices"][0]["message"]
    body = {"model": "m", "messages": [*HI, said, *HI]}
    text = json.dumps(sent(body, CHAT, destination, "claude-sonnet-4-5"))
    assert "c2ln" not in text
    assert said["thinking_blocks"][0]["data"] not in text
    assert "thinking" not in text.replace("thinking_blocks", "")


def test_e10_no_client_of_messages_is_given_what_anthropic_would_refuse() -> None:
    assert [block["type"] for block in answered(CALLS, MESSAGES, GEMINI)["content"]] == ["text", "tool_use", "tool_use"]
    stream = Stream(MESSAGES, GEMINI).feed(data(CALLS, {"candidates": [{"finishReason": "STOP"}]})).end()
    assert b"redacted" not in stream.raw

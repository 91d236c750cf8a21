"""What clients choose beside the question, each through its official library: which tool is to be called, files, sounds,
several answers, probabilities, and how many tokens it will be.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import anthropic
import openai
import pytest
from google.genai import errors as google
from google.genai import types

from kinference.shapes.concepts import Concept, Treatment, treatment
from kinference.vocabulary import Api
from tests.integration.gateway.pairs.meaning import Asked, Document, Said, Sound, User
from tests.integration.gateway.pairs.pair import (
    CHAT,
    GEMINI,
    MESSAGES,
    RESPONSES,
    ROME,
    STANDARD,
    WEATHER,
    Pair,
    every_client,
    every_destination,
)
from tests.integration.gateway.pairs.provider import COUNTED, TOKENS

CONVERSE = Api.BEDROCK_CONVERSE
Choice: TypeAlias = Literal["none", "any", "one"]
NAME = WEATHER.name
PDF, WAV = "JVBERi0xLjQKJSVFT0YK", "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
REFUSALS = (openai.BadRequestError, anthropic.BadRequestError, google.ClientError)

whole = pytest.mark.parametrize("streams", [False], ids=["whole"])


def _mode(mode: str, names: list[str] | None = None) -> Any:
    calling = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode(mode), allowed_function_names=names)
    return types.ToolConfig(function_calling_config=calling)


CHOICES: Mapping[Api, Mapping[Choice, Any]] = {
    CHAT: {"none": "none", "any": "required", "one": {"type": "function", "function": {"name": NAME}}},
    RESPONSES: {"none": "none", "any": "required", "one": {"type": "function", "name": NAME}},
    MESSAGES: {"none": {"type": "none"}, "any": {"type": "any"}, "one": {"type": "tool", "name": NAME}},
    GEMINI: {"none": {"mode": "NONE"}, "any": {"mode": "ANY"}, "one": {"mode": "ANY", "allowedFunctionNames": [NAME]}},
    CONVERSE: {"none": None, "any": {"any": {}}, "one": {"tool": {"name": NAME}}},
}
"""As each API writes it."""


def _chosen(api: Api, choice: Choice) -> Mapping[str, Any]:
    if api is GEMINI:
        modes = {"none": _mode("NONE"), "any": _mode("ANY"), "one": _mode("ANY", [NAME])}
        return {"tool_config": modes[choice]}
    return {"tool_choice": CHOICES[api][choice]}


def _told(shape: Api, body: Any) -> Any:
    if shape is GEMINI:
        return body["toolConfig"]["functionCallingConfig"]
    return body.get("toolConfig", {}).get("toolChoice") if shape is CONVERSE else body.get("tool_choice")


@whole
@every_destination
@every_client
@pytest.mark.parametrize("choice", ["none", "any", "one"])
def test_a_tool_is_called_as_the_client_chooses(pair: Pair, choice: Choice) -> None:
    said = Said("It is warm.") if choice == "none" else Said(calls=(ROME,), ending="tools")
    got = pair.ask(Asked(tools=(WEATHER,), options=_chosen(pair.client.api, choice)), said)
    assert _told(pair.shape, pair.sent()) == CHOICES[pair.shape][choice]
    assert (got.text, len(got.calls)) == (said.text, len(said.calls))


@whole
@every_destination
@every_client
def test_a_file_is_read(pair: Pair) -> None:
    got = pair.ask(Asked([User("What is in it?", documents=(Document(PDF),))]), Said("Nothing."))
    assert got.text == "Nothing."
    assert PDF in json.dumps(pair.sent()).translate(STANDARD)


@whole
@every_destination
@pytest.mark.parametrize("client", [CHAT, GEMINI], ids=lambda api: api.value)
def test_a_sound_is_heard_where_it_can_be(pair: Pair) -> None:
    asked = Asked([User("What is said?", sounds=(Sound(WAV),))])
    if pair.is_translated and treatment(Concept.AUDIO, pair.shape) is Treatment.REFUSED:
        with pytest.raises(REFUSALS):
            pair.ask(asked, Said("Nothing."))
        return
    assert pair.ask(asked, Said("Nothing.")).text == "Nothing."
    assert WAV in json.dumps(pair.sent()).translate(STANDARD)


def _asked_for(pair: Pair, options: Mapping[str, Any]) -> Any:
    """What the client's library gives, unread."""
    model, sdk = pair.model, pair.client.sdk
    if pair.client.api is CHAT:
        return sdk.chat.completions.create(model=model, messages=[{"role": "user", "content": "Where?"}], **options)
    if pair.client.api is RESPONSES:
        return sdk.responses.create(model=model, input="Where?", store=False, **options)
    config = types.GenerateContentConfig(**options)
    return sdk.models.generate_content(model=model, contents="Where?", config=config)


@whole
@every_destination
@pytest.mark.parametrize("client", [CHAT, GEMINI], ids=lambda api: api.value)
def test_several_answers_are_given_where_they_can_be(pair: Pair) -> None:
    pair.gateway.providers.reply = Said("Rome.", answers=2)
    options = {"n": 2} if pair.client.api is CHAT else {"candidate_count": 2}
    if pair.is_translated and treatment(Concept.SEVERAL_ANSWERS, pair.shape) is Treatment.REFUSED:
        with pytest.raises(REFUSALS):
            _asked_for(pair, options)
        return
    answer = _asked_for(pair, options)
    if pair.client.api is CHAT:
        assert [(one.index, one.message.content) for one in answer.choices] == [(0, "Rome."), (1, "Rome.")]
    else:
        assert [one.content.parts[0].text for one in answer.candidates] == ["Rome.", "Rome."]
    assert 2 in (pair.sent().get("n"), pair.sent().get("generationConfig", {}).get("candidateCount"))


PROBABLE: Mapping[Api, Mapping[str, Any]] = {
    CHAT: {"logprobs": True, "top_logprobs": 2},
    RESPONSES: {"top_logprobs": 2, "include": ["message.output_text.logprobs"]},
    GEMINI: {"response_logprobs": True, "logprobs": 2},
}


def _logprobs(api: Api, answer: Any) -> list[tuple[str, float]]:
    if api is CHAT:
        return [(one.token, one.logprob) for one in answer.choices[0].logprobs.content]
    if api is RESPONSES:
        return [(one.token, one.logprob) for one in answer.output[0].content[0].logprobs]
    return [(one.token, one.log_probability) for one in answer.candidates[0].logprobs_result.chosen_candidates]


@whole
@every_destination
@pytest.mark.parametrize("client", [CHAT, RESPONSES, GEMINI], ids=lambda api: api.value)
def test_probabilities_are_told_where_they_can_be(pair: Pair) -> None:
    said = (("Ro", -0.25), ("me.", -0.5))
    pair.gateway.providers.reply = Said("Rome.", logprobs=said)
    if pair.is_translated and treatment(Concept.LOGPROBS, pair.shape) is Treatment.REFUSED:
        with pytest.raises(REFUSALS):
            _asked_for(pair, PROBABLE[pair.client.api])
        return
    assert _logprobs(pair.client.api, _asked_for(pair, PROBABLE[pair.client.api])) == [*said]


@whole
@every_destination
@pytest.mark.parametrize("client", [RESPONSES, MESSAGES, GEMINI], ids=lambda api: api.value)
def test_tokens_are_counted_or_estimated_wherever_the_request_would_go(pair: Pair) -> None:
    model, sdk = pair.model, pair.client.sdk
    if pair.client.api is MESSAGES:
        counted = sdk.messages.count_tokens(model=model, messages=[{"role": "user", "content": "Where?"}]).input_tokens
    elif pair.client.api is RESPONSES:
        counted = sdk.responses.input_tokens.count(model=model, input="Where?").input_tokens
    else:
        counted = sdk.models.count_tokens(model=model, contents="Where?").total_tokens
    assert counted == (TOKENS if pair.shape in COUNTED else 2)  # of the bytes of the question

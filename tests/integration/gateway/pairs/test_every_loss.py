"""What only some APIs have, asked for by every official client: kept, mapped, told as a loss or refused as the table says."""

import json

import anthropic
import openai
import pytest
from google.genai import errors as google
from openai import OpenAI

from kinference.shapes.concepts import Concept, Treatment, treatment
from kinference.shapes.paths import EMBED_PATHS
from kinference.vocabulary import Api
from tests.integration.gateway.pairs.meaning import Asked, Picture, Said, User
from tests.integration.gateway.pairs.pair import (
    CHAT,
    COMPLETIONS,
    GEMINI,
    MESSAGES,
    WORDS,
    Pair,
    both_ways,
    every_client,
    every_destination,
)
from tests.integration.gateway.pairs.running import EMBEDDING, Running, model_at

WHERE = "https://pictures.example/rome.png"
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 40}, "warm": {"type": "boolean"}},
    "required": ["city", "warm"],
    "additionalProperties": False,
}


@both_ways
@every_destination
@every_client
def test_a_picture_elsewhere_is_shown_where_it_can_be(pair: Pair) -> None:
    asked = Asked([User("What is this?", (Picture(url=WHERE),))])
    is_refused = treatment(Concept.IMAGE_URL, pair.shape) is Treatment.REFUSED
    if pair.is_translated and (is_refused or pair.destination is Api.VERTEX_ANTHROPIC):  # which reads no addresses
        with pytest.raises((openai.BadRequestError, anthropic.BadRequestError, google.ClientError)):
            pair.ask(asked, Said("Rome."))
        return
    assert pair.ask(asked, Said("Rome.")).text == "Rome."
    assert WHERE in json.dumps(pair.sent())


@both_ways
@every_destination
@every_client
def test_an_answer_has_the_form_that_was_asked_for(pair: Pair) -> None:
    got = pair.ask(Asked(schema=SCHEMA), Said('{"city":"Rome","warm":true}'))
    assert json.loads(got.text) == {"city": "Rome", "warm": True}
    assert got.ending == WORDS[pair.client.api]["stop"]
    assert "warm" in json.dumps(pair.sent())


@both_ways
@every_destination
@pytest.mark.parametrize("client", [CHAT, COMPLETIONS, MESSAGES, GEMINI], ids=lambda api: api.value)
def test_an_answer_ends_where_it_is_to_stop_or_the_client_is_told(pair: Pair) -> None:
    got = pair.ask(Asked(stop=("END",)), Said("Rome. ", ending="stop sequence", stop_sequence="END"))
    assert got.text == "Rome. "
    if pair.is_translated and treatment(Concept.STOP, pair.shape) is Treatment.DROPPED:
        assert "stop" in got.warnings
        return
    assert got.warnings == ""
    assert '"END"' in json.dumps(pair.sent())
    assert got.ending.removesuffix(" END") in (WORDS[pair.client.api]["stop sequence"], WORDS[pair.client.api]["stop"])


@both_ways
@every_destination
@every_client
def test_reasoning_that_nobody_asked_for_is_shown_without_harm(pair: Pair) -> None:
    """As servers of open models do."""
    got = pair.ask(Asked(), Said("Rome.", "Hm, warm.", "c2ln"))
    assert got.text == "Rome."


@pytest.mark.parametrize(
    "destination", [api for api in Api if api in {*EMBED_PATHS, Api.OPENAI_EMBEDDINGS, Api.AZURE_OPENAI}]
)
@pytest.mark.parametrize("texts", ["warm", ["warm", "cold"]])
def test_texts_are_embedded_wherever_they_can_be(gateway: Running, destination: Api, texts: str | list[str]) -> None:
    with OpenAI(base_url=f"{gateway.url}/v1", api_key="x", max_retries=0) as sdk:
        answer = sdk.embeddings.create(model=model_at(destination, EMBEDDING), input=texts)
    assert [one.embedding for one in answer.data] == [[0, 0.5], [1, 0.5]][: len(answer.data)]
    assert len(answer.data) == (1 if isinstance(texts, str) else 2)

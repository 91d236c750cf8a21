"""What the tests of all pairs share: who speaks with whom, and how each client calls what it is told."""

from collections.abc import Mapping
from typing import Any

import pytest

from kinference.shapes.concepts import Concept, Treatment, treatment
from kinference.vocabulary import Api
from tests.integration.gateway.pairs.clients import Client
from tests.integration.gateway.pairs.meaning import Asked, Call, Ending, Got, Reply, Tool
from tests.integration.gateway.pairs.running import PLAIN, Running, model_at

CHAT, RESPONSES, COMPLETIONS = Api.OPENAI_CHAT, Api.OPENAI_RESPONSES, Api.OPENAI_COMPLETIONS
MESSAGES, GEMINI = Api.ANTHROPIC_MESSAGES, Api.GEMINI
TALKING = (CHAT, RESPONSES, MESSAGES, GEMINI)
DESTINATIONS = tuple(api for api in Api if api not in (COMPLETIONS, Api.OPENAI_EMBEDDINGS))

WORDS: Mapping[Api, Mapping[Ending, str]] = {
    CHAT: {
        "stop": "stop",
        "stop sequence": "stop",
        "length": "length",
        "tools": "tool_calls",
        "refused": "content_filter",
    },
    RESPONSES: {
        "stop": "completed",
        "stop sequence": "completed",
        "length": "max_output_tokens",
        "tools": "completed",
        "refused": "content_filter",
    },
    COMPLETIONS: {"stop": "stop", "stop sequence": "stop", "length": "length", "refused": "content_filter"},
    MESSAGES: {
        "stop": "end_turn",
        "stop sequence": "stop_sequence",
        "length": "max_tokens",
        "tools": "tool_use",
        "refused": "refusal",
    },
    GEMINI: {"stop": "STOP", "stop sequence": "STOP", "length": "MAX_TOKENS", "tools": "STOP", "refused": "SAFETY"},
}
"""How each client is told of an end."""

WEATHER = Tool(
    "get_weather",
    "Says what the weather is.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
ROME = Call("call_rome", "get_weather", {"city": "Rome", "days": 9007199254740993})
OSLO = Call("call_oslo", "get_weather", {"city": 'Ø"s\\lo 🌧️', "days": 1})
STANDARD = str.maketrans("-_", "+/")
"""From the alphabet of base64 that Google's own client writes."""
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

every_client = pytest.mark.parametrize("client", TALKING, ids=lambda api: api.value)
every_destination = pytest.mark.parametrize("destination", DESTINATIONS, ids=lambda api: api.value)
both_ways = pytest.mark.parametrize("streams", [False, True], ids=["whole", "stream"])


class Pair:
    """One client, one provider and one way to be answered."""

    def __init__(self, gateway: Running, client: Client, destination: Api, *, streams: bool) -> None:
        self.gateway, self.client, self.destination, self.streams = gateway, client, destination, streams

    @property
    def shape(self) -> Api:
        """What is spoken there: Azure has a client's own API if it is one of OpenAI's."""
        is_theirs = self.destination is Api.AZURE_OPENAI and self.client.api in (CHAT, RESPONSES, COMPLETIONS)
        return self.client.api if is_theirs else self.destination.shape

    @property
    def is_translated(self) -> bool:
        return self.shape is not self.client.api

    @property
    def model(self) -> str:
        return model_at(self.destination)

    def ask(self, asked: Asked, said: Reply, purpose: str = PLAIN) -> Got:
        self.gateway.providers.reply = said
        return self.client.ask(model_at(self.destination, purpose), asked, streams=self.streams)

    def sent(self) -> Any:
        """The body that the provider got last."""
        return self.gateway.providers.requests[-1].body

    def loses(self, concept: Concept) -> bool:
        """Whether the table says that this is left out."""
        return self.is_translated and treatment(concept, self.shape) is Treatment.DROPPED

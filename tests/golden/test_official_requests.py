"""Every request that a translation gives is one that the destination's official SDK could have sent."""

import json
from pathlib import Path
from typing import Any

import pytest

from kinference.shapes.lost import Untranslatable
from kinference.shapes.translate import DESTINATIONS, Way, emit, plan
from kinference.vocabulary import Api
from tests.golden.official_requests import faults
from tests.golden.test_translation import REQUESTS, golden

AGENTS = json.loads((Path(__file__).parent / "agents.json").read_text(encoding="utf-8"))
BODIES = {(Api(client), name): body for client, bodies in AGENTS.items() for name, body in bodies.items()}
MODELS = {
    Api.OPENAI_CHAT: ("gpt-4o", "gpt-5"),
    Api.OPENAI_RESPONSES: ("gpt-5.1", "gpt-4o"),
    Api.ANTHROPIC_MESSAGES: ("claude-sonnet-4-5", "claude-opus-5"),
    Api.GEMINI: ("gemini-2.5-pro", "gemini-3-pro"),
    Api.BEDROCK_CONVERSE: ("anthropic.claude-sonnet-4-5", "amazon.nova-pro"),
}


@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize("client", REQUESTS)
def test_the_official_client_could_have_sent_every_golden_request(client: Api, destination: Api) -> None:
    assert faults(destination, json.loads(golden(client, destination).read_text(encoding="utf-8"))["request"]) == []


@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize(("client", "name"), BODIES)
def test_the_official_client_could_have_sent_what_agents_bodies_become(
    client: Api, name: str, destination: Api
) -> None:
    for model in MODELS[destination]:
        try:
            planned = plan(json.dumps(BODIES[client, name]).encode(), Way(client, destination, model))
        except Untranslatable:
            continue  # which the tables say of some
        assert faults(destination, json.loads(emit(planned))) == []


@pytest.mark.parametrize("destination", DESTINATIONS)
def test_most_agents_bodies_can_go_anywhere(destination: Api) -> None:
    refused = set()
    for (client, name), body in BODIES.items():
        try:
            plan(json.dumps(body).encode(), Way(client, destination, MODELS[destination][0]))
        except Untranslatable:
            refused.add(name)
    assert refused <= {
        *("pdf+image+prefill", "media", "audio", "logprobs", "structured"),
        *("web history", "web search history"),
    }


@pytest.mark.parametrize(
    ("api", "broken"),
    [
        (Api.OPENAI_CHAT, {"model": "m", "messages": [{"role": "user", "content": "x", "cache_control": {}}]}),
        (Api.OPENAI_RESPONSES, {"model": "m", "input": "x", "tools": [{"type": "function", "name": "f"}]}),
        (Api.ANTHROPIC_MESSAGES, {"model": "m", "messages": [{"role": "user", "content": "x"}]}),
        (Api.GEMINI, {"contents": [{"role": "user", "parts": [{"txt": "x"}]}]}),
        (Api.BEDROCK_CONVERSE, {"messages": [{"role": "user", "content": "x"}]}),
    ],
)
def test_what_no_official_client_sends_is_found(api: Api, broken: Any) -> None:
    assert faults(api, broken)

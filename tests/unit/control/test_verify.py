import asyncio
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from kinference.control.errors import Unmet
from kinference.control.provider_types import ANTHROPIC_PROTOCOLS, OPENAI_PROTOCOLS, Auth
from kinference.control.providers import Resolved
from kinference.control.verify import ANSWER_BYTES_MAX, ValidatedEndpoint, Verifier
from kinference.errors import UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from kinference.ports import Upstream, UpstreamRequest
from tests.unit.control.fakes import Answer, Outside

OPENAI = Resolved("https://up.test/v1", OPENAI_PROTOCOLS, "sk-1", "m", "openai", Auth.BEARER)
ANTHROPIC = replace(
    OPENAI,
    protocols=ANTHROPIC_PROTOCOLS,
    auth=Auth.API_KEY_HEADER,
    default_headers=(("anthropic-version", "2023-06-01"),),
)
SHAPE = Answer(404, b'{"error": {"message": "no such path"}}')


async def refusal(outside: Outside, resolved: Resolved = OPENAI) -> str:
    with pytest.raises(Unmet, match="failed to verify inference endpoint") as refused:
        await Verifier(outside).verify("p", resolved)
    message = str(refused.value)
    assert "--no-verify" in message
    assert "sk-1" not in message
    return message


async def test_fact11_openai_is_probed_with_a_chat_its_key_and_the_routes_model(outside: Outside) -> None:
    endpoint = await Verifier(outside).verify("p", OPENAI)
    assert endpoint == ValidatedEndpoint("https://up.test/v1/chat/completions", "openai_chat_completions")
    (request,) = outside.asked
    assert (request.method, request.origin, request.target) == ("POST", "https://up.test", "/v1/chat/completions")
    assert (b"authorization", b"Bearer sk-1") in request.headers
    assert (b"content-type", b"application/json") in request.headers
    assert json.loads(b"".join(request.body))["model"] == "m"


async def test_fact16_anthropic_is_probed_its_own_way(outside: Outside) -> None:
    endpoint = await Verifier(outside).verify("p", ANTHROPIC)
    assert endpoint.protocol == "anthropic_messages"
    fields = dict(outside.asked[0].headers)
    assert fields[b"x-api-key"] == b"sk-1"
    assert fields[b"anthropic-version"] == b"2023-06-01"
    assert b"authorization" not in fields


async def test_fact15_a_mock_passes_without_the_network(outside: Outside) -> None:
    endpoint = await Verifier(outside).verify("p", replace(OPENAI, base_url="mock://any"))
    assert endpoint == ValidatedEndpoint("mock://any/v1/chat/completions", "openai_chat_completions")
    assert outside.asked == []


async def test_fact17_an_endpoint_of_the_older_kind_gets_the_older_budget(
    outside: Outside, answering: Callable[..., None]
) -> None:
    answering(Answer(400, b"Unknown field max_completion_tokens"), Answer(200))
    await Verifier(outside).verify("p", OPENAI)
    assert "max_tokens" in json.loads(b"".join(outside.asked[1].body))


async def test_fact18_an_endpoint_that_only_embeds_is_found(outside: Outside, answering: Callable[..., None]) -> None:
    answering(SHAPE, SHAPE, SHAPE, Answer(200))
    endpoint = await Verifier(outside).verify("p", OPENAI)
    assert endpoint == ValidatedEndpoint("https://up.test/v1/embeddings", "openai_embeddings")


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (Answer(401), "API key"),
        (Answer(400, b'{"error": {"code": "invalid_api_key"}}'), "API key"),
        (Answer(429), "retry later"),
        (Answer(503), "health of the endpoint"),
        (Answer(307, headers=((b"location", b"http://169.254.169.254/"),)), "check the URL"),
        (UpstreamUnreachable("https://up.test is unreachable"), "service is up"),
        (UpstreamTimeout("https://up.test sent nothing"), "service is up"),
        (UpstreamCut("https://up.test broke off"), "check the URL"),
    ],
)
async def test_fact12_fact14_fact19_any_other_failure_ends_it_with_a_hint(
    outside: Outside, answering: Callable[..., None], answer: Answer, hint: str
) -> None:
    answering(answer, Answer(200))
    assert hint in await refusal(outside)
    assert len(outside.asked) == 1


async def test_fact21_of_several_refused_shapes_the_first_is_told(
    outside: Outside, answering: Callable[..., None]
) -> None:
    answering(Answer(404, b'{"error": "first"}'), SHAPE)
    assert "HTTP 404: first" in await refusal(outside)
    assert len(outside.asked) == 4


async def test_an_endpoint_without_a_protocol_that_can_be_tried_fails(outside: Outside) -> None:
    bedrock = replace(OPENAI, protocols=("aws_bedrock_invoke",))
    assert "none of its protocols can be tried" in await refusal(outside, bedrock)


@pytest.mark.parametrize("base", ["ftp://up.test", "https://", "https://user:pw@up.test", "up.test", "http://[::1"])
async def test_a_base_url_that_cannot_be_called_fails_and_shows_no_password(outside: Outside, base: str) -> None:
    message = await refusal(outside, replace(OPENAI, base_url=base))
    assert "not an http or https URL" in message
    assert "pw" not in message
    assert outside.asked == []


async def test_a_model_in_the_path_is_probed_there(outside: Outside) -> None:
    vertex = replace(ANTHROPIC, base_url="https://v/models", model_in_path=True, path_override=":rawPredict")
    endpoint = await Verifier(outside).verify("p", vertex)
    assert endpoint.url == "https://v/models/m:rawPredict"


async def test_an_endless_answer_is_not_read_to_its_end(outside: Outside, answering: Callable[..., None]) -> None:
    answering(Answer(401, b"x" * (ANSWER_BYTES_MAX * 4)))
    assert len(await refusal(outside)) < 1000


async def test_an_endpoint_that_stays_silent_is_given_up() -> None:
    class Silent(Upstream):
        async def send(self, request: UpstreamRequest) -> Answer:
            await asyncio.Event().wait()
            raise AssertionError

    with pytest.raises(Unmet, match=r"no answer within 0\.01 s"):
        await Verifier(Silent(), patience=0.01).verify("p", OPENAI)


async def test_endpoints_that_are_slow_one_after_the_other_are_given_up_together() -> None:
    class Slow(Upstream):
        asked = 0

        async def send(self, request: UpstreamRequest) -> Answer:
            self.asked += 1
            if self.asked == 2:
                await asyncio.Event().wait()
            return Answer(404)

    with pytest.raises(Unmet, match=r"its answers took over 0\.05 s together"):
        await Verifier(Slow(), in_all=0.05).verify("p", OPENAI)

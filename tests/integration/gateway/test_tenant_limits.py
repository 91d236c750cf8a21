"""Limits of tenants as the vendors' own clients meet them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anthropic
import openai
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam

from kinference.core.limits import Account, Limits
from kinference.core.policy import RoutingRules, TenantRule
from kinference.gateway.auth import ClientKey
from kinference.gateway.options import GatewayOptions
from kinference.sim.options import EngineOptions
from kinference.sim.serving import serve_engine
from tests.integration.gateway.harness import MODEL, MakeGateway, RawUpstream, Rig, answering

KEY = "sk-tenant"
OPTIONS = GatewayOptions(keys=(ClientKey(KEY, "acme"),), allow_unauthenticated=False)
HI: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hi"}]


@asynccontextmanager
async def served(gateway: MakeGateway, limits: Limits, *, speed: float = 100.0) -> AsyncIterator[Rig]:
    """A gateway in front of one engine, for a tenant with limits."""
    options = EngineOptions((MODEL,), speed=speed, output_tokens=12)
    async with serve_engine(options) as engine, gateway(engine.port, options=OPTIONS) as rig:
        rig.router.reconfigure(RoutingRules(tenants=(TenantRule(("acme",), limits=limits),)))
        yield rig


def openai_client(rig: Rig) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"http://127.0.0.1:{rig.port}/v1", api_key=KEY, max_retries=0)


def anthropic_client(rig: Rig) -> AsyncAnthropic:
    return AsyncAnthropic(base_url=f"http://127.0.0.1:{rig.port}", api_key=KEY, max_retries=0)


def account_of(rig: Rig) -> Account:
    (account,) = rig.router.accounts.page(None, 1_000)
    return account


async def test_g9_a_used_up_limit_holds_on_every_api_in_its_own_words(gateway: MakeGateway) -> None:
    async with served(gateway, Limits(requests_per_minute=1)) as rig, openai_client(rig) as client:
        first = await client.chat.completions.with_raw_response.create(model=MODEL, messages=HI)
        assert first.headers["x-ratelimit-limit-requests"] == "1"
        assert first.headers["x-ratelimit-remaining-requests"] == "0"
        for call in (
            client.chat.completions.create(model=MODEL, messages=HI),
            client.completions.create(model=MODEL, prompt="hi"),
            client.responses.create(model=MODEL, input="hi"),
            client.embeddings.create(model=MODEL, input="hi"),
        ):
            with pytest.raises(openai.RateLimitError, match="requests_per_minute of 1") as refused:
                await call
            assert 50 < int(refused.value.response.headers["retry-after"]) <= 60
        async with anthropic_client(rig) as other:
            with pytest.raises(anthropic.RateLimitError, match="requests_per_minute of 1") as limited:
                await other.messages.create(model=MODEL, max_tokens=8, messages=[{"role": "user", "content": "hi"}])
            assert limited.value.response.headers["anthropic-ratelimit-requests-remaining"] == "0"
            assert 50 < int(limited.value.response.headers["retry-after"]) <= 60


async def test_g10_of_five_at_once_as_many_pass_as_the_limit_says(gateway: MakeGateway) -> None:
    async with served(gateway, Limits(concurrent=1), speed=1.0) as rig, openai_client(rig) as client:
        asked = [client.chat.completions.create(model=MODEL, messages=HI) for _ in range(5)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert sum(isinstance(answer, openai.RateLimitError) for answer in answers) == 4
        await client.chat.completions.create(model=MODEL, messages=HI)
        await rig.page()
        assert account_of(rig).in_flight == 0


async def test_g7_a_client_that_leaves_in_the_middle_pays_for_what_it_had(gateway: MakeGateway) -> None:
    async with served(gateway, Limits(tokens_per_minute=10_000), speed=1.0) as rig, openai_client(rig) as client:
        stream = await client.chat.completions.create(model=MODEL, messages=HI, stream=True)
        async for _ in stream:
            break
        await stream.close()
        await rig.page()
        account = account_of(rig)
        assert account.tokens is not None
        assert account.tokens.level < account.tokens.size
        assert account.in_flight == 0


async def test_a_request_that_is_tried_again_elsewhere_counts_once(gateway: MakeGateway) -> None:
    broken = RawUpstream(answering(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"))
    options = EngineOptions((MODEL,), speed=100.0, output_tokens=12)
    async with (
        broken.listening(),
        serve_engine(options) as engine,
        gateway(broken.port, engine.port, options=OPTIONS) as rig,
        openai_client(rig) as client,
    ):
        limits = Limits(requests_per_minute=8)
        rig.router.reconfigure(RoutingRules(tenants=(TenantRule(("acme",), limits=limits),)))
        for _ in range(8):
            await client.chat.completions.create(model=MODEL, messages=HI)
        assert broken.received
        with pytest.raises(openai.RateLimitError):
            await client.chat.completions.create(model=MODEL, messages=HI)

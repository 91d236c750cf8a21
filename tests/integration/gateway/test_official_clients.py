"""The vendors' own clients, streaming through the gateway from simulated engines."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anthropic
import openai
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from kinference.gateway.auth import ClientKey
from kinference.gateway.options import GatewayOptions
from kinference.sim.faults import Fault, FaultKind
from kinference.sim.options import EngineOptions
from kinference.sim.serving import serve_engine
from tests.integration.gateway.harness import MODEL, MakeGateway, Rig

KEY = "sk-tenant"
OPTIONS = GatewayOptions(keys=(ClientKey(KEY, "acme"),), allow_unauthenticated=False)
TOKENS = 12


@asynccontextmanager
async def served(gateway: MakeGateway, fault: Fault | None = None) -> AsyncIterator[Rig]:
    """A gateway in front of one fast engine."""
    options = EngineOptions((MODEL,), speed=100.0, output_tokens=TOKENS, fault=fault)
    async with serve_engine(options) as engine, gateway(engine.port, options=OPTIONS) as rig:
        yield rig


def openai_client(rig: Rig, key: str = KEY) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"http://127.0.0.1:{rig.port}/v1", api_key=key, max_retries=0)


def anthropic_client(rig: Rig, key: str = KEY) -> AsyncAnthropic:
    return AsyncAnthropic(base_url=f"http://127.0.0.1:{rig.port}", api_key=key, max_retries=0)


async def test_the_openai_client_streams_a_chat(gateway: MakeGateway) -> None:
    async with served(gateway) as rig, openai_client(rig) as client:
        stream = await client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "hi"}], stream=True
        )
        chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text
    assert chunks[-1].choices[0].finish_reason is not None
    assert all(chunk.choices for chunk in chunks)  # nobody asked for a usage chunk


async def test_the_openai_client_gets_the_usage_that_it_asks_for(gateway: MakeGateway) -> None:
    async with served(gateway) as rig, openai_client(rig) as client:
        stream = await client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "hi"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == TOKENS


async def test_the_openai_client_reads_whole_answers_of_every_api(gateway: MakeGateway) -> None:
    async with served(gateway) as rig, openai_client(rig) as client:
        chat = await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hi"}])
        completion = await client.completions.create(model=MODEL, prompt="hi", max_tokens=4)
        response = await client.responses.create(model=MODEL, input="hi")
        embedding = await client.embeddings.create(model=MODEL, input="hi")
        models = await client.models.list()
    assert chat.choices[0].message.content
    assert completion.choices[0].text
    assert response.output_text
    assert embedding.data[0].embedding
    assert [model.id for model in models.data] == [MODEL]


async def test_the_openai_client_streams_a_response(gateway: MakeGateway) -> None:
    async with served(gateway) as rig, openai_client(rig) as client:
        stream = await client.responses.create(model=MODEL, input="hi", stream=True)
        kinds = [event.type async for event in stream]
    assert "response.output_text.delta" in kinds
    assert kinds[-1] == "response.completed"


async def test_the_anthropic_client_streams_a_message(gateway: MakeGateway) -> None:
    async with (
        served(gateway) as rig,
        anthropic_client(rig) as client,
        client.messages.stream(model=MODEL, max_tokens=8, messages=[{"role": "user", "content": "hi"}]) as stream,
    ):
        text = "".join([piece async for piece in stream.text_stream])
        message = await stream.get_final_message()
    assert text
    assert message.stop_reason is not None
    assert message.usage.output_tokens > 0


async def test_the_anthropic_client_reads_messages_counts_and_models(gateway: MakeGateway) -> None:
    async with served(gateway) as rig, anthropic_client(rig) as client:
        message = await client.messages.create(model=MODEL, max_tokens=8, messages=[{"role": "user", "content": "hi"}])
        counted = await client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "hi"}])
        models = await client.models.list()
    assert message.content
    assert counted.input_tokens > 0
    assert [model.id for model in models.data] == [MODEL]


async def test_a_wrong_key_is_an_authentication_error_to_both(gateway: MakeGateway) -> None:
    async with served(gateway) as rig:
        async with openai_client(rig, "sk-wrong") as client:
            with pytest.raises(openai.AuthenticationError):
                await client.models.list()
        async with anthropic_client(rig, "sk-wrong") as other:
            with pytest.raises(anthropic.AuthenticationError):
                await other.models.list()


async def test_an_unknown_model_is_not_found_to_both(gateway: MakeGateway) -> None:
    async with served(gateway) as rig:
        async with openai_client(rig) as client:
            with pytest.raises(openai.NotFoundError):
                await client.chat.completions.create(model="nobody", messages=[{"role": "user", "content": "hi"}])
        async with anthropic_client(rig) as other:
            with pytest.raises(anthropic.NotFoundError):
                await other.messages.create(model="nobody", max_tokens=8, messages=[{"role": "user", "content": "hi"}])


async def test_a10_a_stream_that_the_engine_cuts_is_an_error_to_both(gateway: MakeGateway) -> None:
    async with served(gateway, Fault(FaultKind.CUT, after_chunks=3)) as rig:
        async with openai_client(rig) as client:
            stream = await client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": "hi"}], stream=True
            )
            with pytest.raises(openai.APIError, match="closed its answer"):
                assert [chunk async for chunk in stream]
        async with anthropic_client(rig) as other:
            with pytest.raises(anthropic.APIError):
                async with other.messages.stream(
                    model=MODEL, max_tokens=8, messages=[{"role": "user", "content": "hi"}]
                ) as events:
                    assert [event async for event in events]

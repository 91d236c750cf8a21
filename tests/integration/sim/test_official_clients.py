"""The simulated engine over real HTTP and ZMQ, asked by the clients that people use."""

import asyncio
from collections.abc import AsyncIterator

import anthropic
import msgspec
import openai
import pytest
import zmq
import zmq.asyncio
from openai.types.chat import ChatCompletionMessageParam

from kinference.sim.faults import Fault, FaultKind
from kinference.sim.options import EngineOptions, KvEventOptions
from kinference.sim.serving import RunningEngine, serve_engine

OPTIONS = EngineOptions(
    models=("sim",), speed=1000.0, output_tokens=12, kv_events=KvEventOptions("tcp://127.0.0.1:*", "tcp://127.0.0.1:*")
)
QUESTION: ChatCompletionMessageParam = {"role": "user", "content": "Tell me about the sea. " * 20}


@pytest.fixture
async def engine() -> AsyncIterator[RunningEngine]:
    async with serve_engine(OPTIONS) as running:
        yield running


@pytest.fixture
async def client(engine: RunningEngine) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{engine.url}/v1", api_key="none", max_retries=0) as made:
        yield made


async def say(
    client: openai.AsyncOpenAI, messages: list[ChatCompletionMessageParam]
) -> tuple[str, str | None, openai.types.CompletionUsage]:
    """One streamed turn: its text, why it ended, and its usage."""
    stream = await client.chat.completions.create(
        model="sim", messages=messages, stream=True, stream_options={"include_usage": True}
    )
    text, finish, usage = "", None, None
    async for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
    assert usage is not None
    return text, finish, usage


async def test_the_second_turn_of_a_chat_hits_the_first_ones_prefix(client: openai.AsyncOpenAI) -> None:
    text, finish, usage = await say(client, [QUESTION])
    assert (len(text.split()), finish, usage.completion_tokens) == (12, "stop", 12)
    assert usage.prompt_tokens_details is not None
    assert usage.prompt_tokens_details.cached_tokens == 0
    _, _, second = await say(
        client, [QUESTION, {"role": "assistant", "content": text}, {"role": "user", "content": "And the sky?"}]
    )
    assert second.prompt_tokens_details is not None
    cached = second.prompt_tokens_details.cached_tokens
    known = usage.prompt_tokens + usage.completion_tokens - 1
    assert cached == known // 16 * 16


async def test_every_api_of_openai_is_understood(client: openai.AsyncOpenAI) -> None:
    chat = await client.chat.completions.create(model="sim", messages=[QUESTION], max_tokens=3)
    assert chat.choices[0].finish_reason == "length"
    text = await client.completions.create(model="sim", prompt="Once upon a time", max_tokens=3)
    assert len(text.choices[0].text.split()) == 3
    embedded = await client.embeddings.create(model="sim", input=["one", "two"])
    assert [len(entry.embedding) for entry in embedded.data] == [64, 64]
    response = await client.responses.create(model="sim", input="Hello")
    async with client.responses.stream(model="sim", input="Hello") as stream:
        streamed = await stream.get_final_response()
    assert streamed.output_text == response.output_text != ""
    assert [model.id async for model in client.models.list()] == ["sim"]


async def test_anthropics_client_is_understood_too(engine: RunningEngine) -> None:
    async with anthropic.AsyncAnthropic(base_url=engine.url, api_key="none", max_retries=0) as client:
        whole = await client.messages.create(
            model="sim", max_tokens=5, system="Be brief.", messages=[{"role": "user", "content": "Hello"}]
        )
        async with client.messages.stream(
            model="sim", max_tokens=5, system="Be brief.", messages=[{"role": "user", "content": "Hello"}]
        ) as stream:
            streamed = await stream.get_final_message()
        counted = await client.messages.count_tokens(
            model="sim", system="Be brief.", messages=[{"role": "user", "content": "Hello"}]
        )
    assert whole.content[0].type == "text"
    assert [block.to_dict()["text"] for block in streamed.content] == [whole.content[0].text]
    assert (whole.stop_reason, whole.usage.output_tokens) == ("max_tokens", 5)
    assert counted.input_tokens == whole.usage.input_tokens


async def test_errors_are_raised_as_the_clients_raise_them(engine: RunningEngine, client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        await client.chat.completions.create(model="other", messages=[QUESTION])
    engine.engine.add_fault(Fault(FaultKind.STATUS, status=429, retry_after=1.0, count=1))
    with pytest.raises(openai.RateLimitError) as limited:
        await client.chat.completions.create(model="sim", messages=[QUESTION])
    assert limited.value.response.headers["retry-after"] == "1"
    engine.engine.add_fault(Fault(FaultKind.REFUSE, count=1))
    with pytest.raises(openai.APIConnectionError):
        await client.chat.completions.create(model="sim", messages=[QUESTION])


async def test_a_client_that_hangs_up_frees_its_place() -> None:
    options = EngineOptions(models=("sim",), output_tokens=100_000)
    async with (
        serve_engine(options) as running,
        openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key="none") as client,
    ):
        stream = await client.chat.completions.create(model="sim", messages=[QUESTION], stream=True)
        await anext(aiter(stream))
        assert running.engine.model.running == 1
        await stream.close()
        async with asyncio.timeout(5):
            while running.engine.model.running:  # noqa: ASYNC110 - the model has no event for it, and needs none
                await asyncio.sleep(0.01)
        assert running.engine.model.kv_usage == 0


async def test_a_subscriber_reads_the_blocks_that_a_chat_stored(
    engine: RunningEngine, client: openai.AsyncOpenAI
) -> None:
    with zmq.asyncio.Context() as context, context.socket(zmq.SUB) as socket:
        socket.subscribe(b"")
        socket.connect(engine.kv_events_endpoint)
        stored = None
        for attempt in range(100):  # a subscription takes a moment to arrive: each attempt is a prompt of its own
            await client.completions.create(model="sim", prompt=f"{attempt:4}" * 40, max_tokens=1)
            if await socket.poll(20):
                _, number, payload = await socket.recv_multipart()
                stored = msgspec.msgpack.decode(payload)[1][0]
                break
    assert stored is not None
    assert int.from_bytes(number, "big") == attempt
    assert (stored["type"], stored["block_size"], stored["parent_block_hash"]) == ("BlockStored", 16, None)
    assert stored["token_ids"] == [int.from_bytes(f"{attempt:4}".encode(), "little")] * 32
    assert len(stored["block_hashes"]) == 2

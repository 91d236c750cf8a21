"""The inference calls: from a body to a job for the engine, and from its tokens to an answer in the caller's API."""

import asyncio
import struct
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import count

import msgspec
import xxhash

from kinference.ports import Clock
from kinference.sim.answers import Head, Usage, Writer
from kinference.sim.asks import (
    Ask,
    Parse,
    Refused,
    parse_chat,
    parse_completion,
    parse_embeddings,
    parse_messages,
    parse_responses,
)
from kinference.sim.messages_answers import MessagesWriter
from kinference.sim.openai_answers import ChatWriter, CompletionWriter
from kinference.sim.options import EngineOptions
from kinference.sim.responses_answers import ResponsesWriter
from kinference.sim.runner import Job, Progress, Runner, run_to_end
from kinference.sim.text import TOKEN_BYTES, block_hashes, root_hash, token_count, words
from kinference.wire.exchange import Exchange, respond

JSON = b"application/json"
_STREAM_HEADERS = ((b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache"))
_DIMENSIONS = 64
_DIMENSIONS_MAX = 8192


@dataclass(frozen=True, slots=True)
class Call:
    """One path that asks for inference; without a writer it is answered with embeddings."""

    parse: Parse
    writer: Callable[[Head], Writer] | None = None


CALLS: dict[str, Call] = {
    "/v1/chat/completions": Call(parse_chat, ChatWriter),
    "/v1/completions": Call(parse_completion, CompletionWriter),
    "/v1/responses": Call(parse_responses, ResponsesWriter),
    "/v1/messages": Call(parse_messages, MessagesWriter),
    "/v1/embeddings": Call(parse_embeddings),
}


class Inference:
    """Plans jobs and writes their answers."""

    def __init__(self, options: EngineOptions, runner: Runner, clock: Clock) -> None:
        self._options, self._runner, self._clock = options, runner, clock
        self._numbers = count(1)

    async def answer(self, exchange: Exchange, call: Call, raw: bytes, cut_after: int | None) -> None:
        """Serve one call; `cut_after` breaks the answer off after so many chunks. Raises Refused before any byte."""
        ask = call.parse(raw)
        model = self._model(ask)
        jobs = [self._job(ask, prompt, embeds=call.writer is None) for prompt in ask.prompts]
        head = self._head(model, ask, jobs)
        if call.writer is None:
            await self._embed(exchange, head, ask, jobs, cut_after)
        elif ask.stream:
            await self._stream(exchange, call.writer(head), jobs[0], cut_after)
        else:
            await self._whole(exchange, call.writer(head), jobs[0], cut_after)

    def _head(self, model: str, ask: Ask, jobs: Sequence[Job]) -> Head:
        return Head(
            number=f"{xxhash.xxh3_64_intdigest(str(next(self._numbers)).encode(), self._options.seed):016x}",
            created=int(self._clock.wall()),
            model=model,
            prompt_tokens=sum(token_count(job.prompt) for job in jobs),
            finish=jobs[0].finish_reason,
            include_usage=ask.include_usage,
        )

    def _model(self, ask: Ask) -> str:
        model = ask.model or self._options.models[0]
        if model not in self._options.models:
            raise Refused(404, f"The model `{model}` does not exist.", "model")
        return model

    def _job(self, ask: Ask, prompt: bytes, *, embeds: bool) -> Job:
        prompt_tokens, limit = token_count(prompt), self._options.model_tokens_max
        room = limit - prompt_tokens
        wanted = 0 if embeds else ask.output_tokens_max
        if room < (wanted if wanted is not None else 1):
            raise Refused(
                400,
                f"This model's maximum context length is {limit} tokens. However, the prompt has {prompt_tokens} "
                f"tokens and {wanted or 1} were asked for. Please shorten the prompt or lower max_tokens.",
                "max_tokens" if prompt_tokens < limit else "input_tokens",
            )
        natural = room if ask.ignore_eos else min(self._options.output_tokens, room)
        spoken = natural if wanted is None else min(natural, wanted)
        output = "".join(words(prompt, spoken)).encode()
        root = root_hash(self._options.seed, ask.salt)
        blocks = block_hashes(prompt + output, self._options.timing.block_tokens, root)
        is_full = wanted is not None and spoken == wanted
        return Job(prompt, output, blocks, ask.salt, "length" if is_full else "stop")

    async def _stream(self, exchange: Exchange, writer: Writer, job: Job, cut_after: int | None) -> None:
        await exchange.start(200, _STREAM_HEADERS)
        speech = _Speech(writer, job)
        left = cut_after
        async with aclosing(self._runner.run(job)) as steps:
            async for progress in steps:
                chunks = speech.more(progress)
                if left is not None:
                    left -= len(chunks)
                    if left < 0:
                        await exchange.write(b"".join(chunks[:left]))
                        exchange.abort()
                        return
                await exchange.write(b"".join(chunks))
        await exchange.finish()

    async def _whole(self, exchange: Exchange, writer: Writer, job: Job, cut_after: int | None) -> None:
        cached_tokens = await run_to_end(self._runner, job)
        usage = Usage(token_count(job.prompt), cached_tokens, token_count(job.output))
        await send_whole(exchange, writer.whole(job.output.decode(), usage), cut_after)

    async def _embed(
        self, exchange: Exchange, head: Head, ask: Ask, jobs: Sequence[Job], cut_after: int | None
    ) -> None:
        dimensions = _DIMENSIONS if ask.dimensions is None else ask.dimensions
        if not 1 <= dimensions <= _DIMENSIONS_MAX:
            raise Refused(400, f"dimensions must be from 1 to {_DIMENSIONS_MAX}, got {dimensions}.", "dimensions")
        async with asyncio.TaskGroup() as group:
            for job in jobs:
                group.create_task(run_to_end(self._runner, job))
        tokens = sum(token_count(job.prompt) for job in jobs)
        body = {
            "id": f"embd-{head.number}",
            "object": "list",
            "created": head.created,
            "model": head.model,
            "data": [
                {"index": index, "object": "embedding", "embedding": _vector(job.prompt, dimensions, ask.as_base64)}
                for index, job in enumerate(jobs)
            ],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0},
        }
        await send_whole(exchange, msgspec.json.encode(body), cut_after)


async def send_whole(exchange: Exchange, body: bytes, cut_after: int | None = None) -> None:
    """A JSON answer in one piece, or, as the fault has it, its first half and then the end of the connection."""
    if cut_after is None:
        await respond(exchange, 200, body, JSON)
        return
    await exchange.start(200, ((b"content-type", JSON), (b"content-length", str(len(body)).encode())))
    await exchange.write(body[: len(body) // 2])
    exchange.abort()


class _Speech:
    """How far a streamed answer has come, and the events that carry it on."""

    def __init__(self, writer: Writer, job: Job) -> None:
        self._writer, self._job = writer, job
        self._tokens = 0

    def more(self, progress: Progress) -> list[bytes]:
        """The events for the tokens that came since the last call."""
        chunks = [] if self._tokens else self._writer.opening()
        start = self._tokens * TOKEN_BYTES
        self._tokens += progress.tokens
        text = self._job.output[start : self._tokens * TOKEN_BYTES].decode()
        said = [text[at : at + TOKEN_BYTES] for at in range(0, len(text), TOKEN_BYTES)]
        if not progress.is_last:
            return chunks + [self._writer.word(word) for word in said]
        assert said, "a last token comes with the end"
        usage = Usage(token_count(self._job.prompt), progress.cached_tokens, self._tokens)
        chunks += [self._writer.word(word) for word in said[:-1]]
        return [*chunks, self._writer.last_word(said[-1]), *self._writer.closing(usage)]


def _vector(prompt: bytes, dimensions: int, as_base64: bool) -> list[float] | str:
    """Numbers from -1 to 1 that depend on the text alone."""
    values = list(_noise(prompt, range(dimensions)))
    if as_base64:
        return b64encode(struct.pack(f"<{dimensions}f", *values)).decode()
    return values


def _noise(prompt: bytes, places: Iterable[int]) -> Iterator[float]:
    return (xxhash.xxh32_intdigest(prompt, place) / 2**31 - 1 for place in places)

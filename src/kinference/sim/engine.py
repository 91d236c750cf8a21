"""A simulated engine behind the server's seam: it looks like vLLM to whoever speaks HTTP to it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import TypeAlias

import msgspec

from kinference.ports import Clock
from kinference.sim.asks import Refused, parse_messages, parse_tokenize
from kinference.sim.events import Event
from kinference.sim.faults import Fault, FaultBoard, FaultKind, parse_fault
from kinference.sim.inference import CALLS, JSON, Inference, send_whole
from kinference.sim.kv_events import AllBlocksCleared, KvEventPublisher, translate
from kinference.sim.metrics import EngineMetrics
from kinference.sim.model import EngineModel
from kinference.sim.options import EngineOptions
from kinference.sim.runner import Job, Runner
from kinference.sim.text import token_count, token_ids
from kinference.wire.exchange import Exchange, respond

VERSION = "0.32.0"
BODY_BYTES_MAX = 64 * 1024 * 1024
_METRICS_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_FAULTS_PATH = "/sim/faults"
_REQUESTS_PATH = "/sim/requests"

Route: TypeAlias = Callable[[Exchange], Awaitable[None]]


class Engine:
    """One engine: the model, its runner, its faults, and a handler for every path. `handle` is the server's handler."""

    def __init__(self, options: EngineOptions, clock: Clock) -> None:
        self.options = options
        self.model = EngineModel(options.timing)
        self.metrics = EngineMetrics(self.model, options.models[0], clock.wall())
        self.runner = Runner(self.model, clock, options.speed, self.metrics)
        self.faults = FaultBoard(Random(options.seed))
        self._inference = Inference(options, self.runner, clock)
        self._clock = clock
        self._publisher: KvEventPublisher | None = None
        if options.fault is not None:
            self.add_fault(options.fault)
        self._routes: dict[tuple[str, str], Route] = {
            ("GET", "/health"): self._say_nothing,
            ("GET", "/ping"): self._say_nothing,
            ("POST", "/ping"): self._say_nothing,
            ("GET", "/version"): self._say_version,
            ("GET", "/metrics"): self._say_metrics,
            ("GET", "/v1/models"): self._list_models,
            ("POST", "/tokenize"): self._tokenize,
            ("POST", "/v1/messages/count_tokens"): self._count_tokens,
            ("POST", "/reset_prefix_cache"): self._reset_prefix_cache,
            ("GET", _REQUESTS_PATH): self._list_requests,
            ("GET", _FAULTS_PATH): self._list_faults,
            ("POST", _FAULTS_PATH): self._add_fault,
            ("DELETE", _FAULTS_PATH): self._clear_faults,
        }

    def publish_to(self, publisher: KvEventPublisher) -> None:
        """Tell a publisher of every change to the cache from now on."""
        self._publisher = publisher
        self.runner.observe(self._publish)

    def add_fault(self, fault: Fault) -> None:
        self.faults.add(fault)
        self.model.slowdown = self.faults.slowdown

    def clear_faults(self) -> None:
        self.faults.clear()
        self.model.slowdown = self.faults.slowdown

    def reset_prefix_cache(self) -> bool:
        """Forget all cached blocks; refused while a request is running."""
        done = self.model.reset_prefix_cache()
        if done and self._publisher is not None:
            self._publisher.publish(self._clock.wall(), [AllBlocksCleared()])
        return done

    async def handle(self, exchange: Exchange) -> None:
        """Answer one request, unless a fault gets in the way."""
        call = CALLS.get(exchange.path) if exchange.method == "POST" else None
        fault = None
        if exchange.path != _FAULTS_PATH:
            fault = self.faults.draw(is_inference=call is not None)
        try:
            if fault is not None and await _misbehave(exchange, fault):
                return
            cut_after = fault.after_chunks if fault is not None else None
            if call is not None:
                await self._inference.answer(exchange, call, await _read(exchange), cut_after)
                return
            route = self._routes.get((exchange.method, exchange.path))
            await (route or self._no_route)(exchange)
        except Refused as refused:
            await _refuse(exchange, refused)

    def _publish(self, events: Sequence[Event], job_of: Callable[[int], Job]) -> None:
        assert self._publisher is not None, "only a publisher's engine observes"
        told = translate(events, job_of, self.options.timing.block_tokens)
        self._publisher.publish(self._clock.wall(), told)

    async def _no_route(self, exchange: Exchange) -> None:
        known = exchange.path in CALLS or any(path == exchange.path for _, path in self._routes)
        status, detail = (405, b'{"detail":"Method Not Allowed"}') if known else (404, b'{"detail":"Not Found"}')
        await respond(exchange, status, detail, JSON)

    async def _say_nothing(self, exchange: Exchange) -> None:
        await respond(exchange, 200, b"", JSON)

    async def _say_version(self, exchange: Exchange) -> None:
        await send_whole(exchange, msgspec.json.encode({"version": VERSION}))

    async def _say_metrics(self, exchange: Exchange) -> None:
        await respond(exchange, 200, self.metrics.exposition(), _METRICS_TYPE)

    async def _list_models(self, exchange: Exchange) -> None:
        cards: list[dict[str, object]] = [
            {
                "id": name,
                "object": "model",
                "created": int(self._clock.wall()),
                "owned_by": "vllm",
                "root": self.options.models[0],
                "parent": None,
                "max_model_len": self.options.model_tokens_max,
                "permission": [],
            }
            for name in self.options.models
        ]
        await send_whole(exchange, msgspec.json.encode({"object": "list", "data": cards}))

    async def _tokenize(self, exchange: Exchange) -> None:
        tokens = token_ids(parse_tokenize(await _read(exchange)).prompts[0])
        body = {
            "count": len(tokens),
            "max_model_len": self.options.model_tokens_max,
            "tokens": tokens,
            "token_strs": None,
        }
        await send_whole(exchange, msgspec.json.encode(body))

    async def _count_tokens(self, exchange: Exchange) -> None:
        ask = parse_messages(await _read(exchange))
        await send_whole(exchange, msgspec.json.encode({"input_tokens": token_count(ask.prompts[0])}))

    async def _reset_prefix_cache(self, exchange: Exchange) -> None:
        self.reset_prefix_cache()
        await respond(exchange, 200, b"", JSON)

    async def _list_requests(self, exchange: Exchange) -> None:
        """What was answered, by the engine's own clock, oldest first."""
        await send_whole(exchange, msgspec.json.encode({"requests": list(self.runner.lived)}))

    async def _list_faults(self, exchange: Exchange) -> None:
        await send_whole(exchange, msgspec.json.encode({"faults": self.faults.faults}))

    async def _add_fault(self, exchange: Exchange) -> None:
        try:
            self.add_fault(parse_fault(await _read(exchange)))
        except ValueError as error:
            raise Refused(400, str(error)) from None
        await self._list_faults(exchange)

    async def _clear_faults(self, exchange: Exchange) -> None:
        self.clear_faults()
        await self._list_faults(exchange)


async def _misbehave(exchange: Exchange, fault: Fault) -> bool:
    """Act a fault out; False when the answer itself will have to (a cut)."""
    match fault.kind:
        case FaultKind.REFUSE:
            exchange.abort()
        case FaultKind.HANG:
            await asyncio.Event().wait()  # until the client gives up, which cancels us
        case FaultKind.STATUS:
            retry = () if fault.retry_after is None else ((b"retry-after", f"{fault.retry_after:g}".encode()),)
            refused = Refused(fault.status, "simulated fault")
            await respond(exchange, fault.status, _error_body(exchange.path, refused), JSON, *retry)
        case _:
            return False
    return True


async def _refuse(exchange: Exchange, refused: Refused) -> None:
    await respond(exchange, refused.status, _error_body(exchange.path, refused), JSON)


def _error_body(path: str, refused: Refused) -> bytes:
    """The error in the dialect of the path that it answers."""
    if path.startswith("/v1/messages"):
        return msgspec.json.encode({"type": "error", "error": {"type": refused.kind, "message": refused.message}})
    error = {"message": refused.message, "type": refused.kind, "param": refused.param, "code": refused.status}
    return msgspec.json.encode({"error": error})


async def _read(exchange: Exchange) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in exchange.body():
        size += len(chunk)
        if size > BODY_BYTES_MAX:
            raise Refused(413, f"the body is over {BODY_BYTES_MAX} bytes")
        chunks.append(chunk)
    return b"".join(chunks)

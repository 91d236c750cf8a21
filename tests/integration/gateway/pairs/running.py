"""The gateway in front of the eleven providers, on real sockets and a thread of its own, for clients that block."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from random import Random
from threading import Thread

from kinference.core.fleet import BackendSpec, Fleet
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules
from kinference.gateway.backends import BackendRoute, Directory, ServedModel
from kinference.gateway.options import GatewayOptions, Outside
from kinference.gateway.service import Gateway
from kinference.ids import ObjectRef
from kinference.observe.metrics import Metrics
from kinference.picker.desk import Desk
from kinference.picker.inprocess import InProcessPicker
from kinference.picker.limits import PickerLimits
from kinference.vocabulary import Api
from kinference.wire.http1.upstream import Http1Upstream
from kinference.wire.http_server import OwnHttpServer
from tests.integration.gateway.harness import RawUpstream, RealClock
from tests.integration.gateway.pairs.provider import Providers

PLAIN, THINKING, FAILING, EMBEDDING = "plain", "thinking", "failing", "embedding"
_CLAUDE, _GEMINI, _GPT = "claude-sonnet-4-5", "gemini-2.5-pro", "gpt-4o"
MODELS: Mapping[Api, tuple[str, str]] = {
    # one that does not reason, and one that does
    Api.OPENAI_CHAT: (_GPT, "deepseek-reasoner"),
    Api.OPENAI_RESPONSES: (_GPT, "gpt-5.1"),
    Api.OPENAI_COMPLETIONS: ("gpt-3.5-turbo-instruct", "gpt-3.5-turbo-instruct"),
    Api.OPENAI_EMBEDDINGS: ("text-embedding-3-small", "text-embedding-3-small"),
    Api.ANTHROPIC_MESSAGES: (_CLAUDE, "claude-opus-4-6"),
    Api.GEMINI: (_GEMINI, "gemini-3-pro"),
    Api.BEDROCK_CONVERSE: ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "us.anthropic.claude-opus-4-6-v1"),
    Api.AZURE_OPENAI: (_GPT, "our-deepseek"),
    Api.VERTEX_ANTHROPIC: ("claude-sonnet-4-5@20250929", "claude-opus-4-6"),
    Api.VERTEX_GEMINI: (_GEMINI, "gemini-3-pro"),
    Api.VERTEX_OPENAI: ("meta/llama-4-maverick", "deepseek-ai/deepseek-r1"),
}


def model_at(api: Api, purpose: str = PLAIN) -> str:
    """The name under which clients ask for an API's provider."""
    return f"{purpose}-{api.value}"


@dataclass(frozen=True)
class Running:
    url: str
    providers: Providers


def _backends() -> Iterator[BackendSpec]:
    for api, (plain, thinking) in MODELS.items():
        for purpose in (PLAIN, THINKING, FAILING):  # failures of the one are no reason to avoid the others
            theirs = thinking if purpose == THINKING else plain
            yield BackendSpec(ObjectRef(purpose, api.value), api, {model_at(api, purpose): theirs})
        embeds = "cohere.embed-multilingual-v3" if api is Api.BEDROCK_CONVERSE else plain
        yield BackendSpec(ObjectRef(EMBEDDING, api.value), api, {model_at(api, EMBEDDING): embeds})


async def _serve(stack: AsyncExitStack, providers: Providers) -> str:
    upstream = await stack.enter_async_context(RawUpstream(providers.script).listening())
    clock, metrics, fleet = RealClock(), Metrics(), Fleet()
    specs = [*_backends()]
    fleet.set_backends(specs)
    routes = {
        spec.ref: BackendRoute(spec.ref, f"http://127.0.0.1:{upstream.port}/{spec.api.value}", "sk-theirs", spec.api)
        for spec in specs
    }
    desk = Desk(Router(fleet, RoutingRules(), Random(1)), PickerLimits(), clock, metrics, Random(2))
    models = tuple(ServedModel(model) for spec in specs for model in spec.models)
    directory = Directory(lambda _address: None, routes.get, lambda: models)
    carrier = await stack.enter_async_context(Http1Upstream())
    gateway = Gateway(Outside(InProcessPicker(desk), carrier, clock, metrics, directory), GatewayOptions())
    server = OwnHttpServer(gateway.handle, clock)
    port = await server.start("127.0.0.1", 0)
    stack.push_async_callback(server.close)
    return f"http://127.0.0.1:{port}"


@contextmanager
def running() -> Iterator[Running]:
    """A gateway for as long as the block lasts."""
    providers, started, loop = Providers(), Future[str](), asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve() -> None:
        async with AsyncExitStack() as stack:
            started.set_result(await _serve(stack, providers))
            await ended.wait()

    thread = Thread(target=_run, args=(loop, serve))
    thread.start()
    try:
        yield Running(started.result(timeout=20), providers)
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(timeout=20)


def _run(loop: asyncio.AbstractEventLoop, serve: Callable[[], "asyncio.Future[None]"]) -> None:
    try:
        loop.run_until_complete(serve())
    finally:
        loop.close()

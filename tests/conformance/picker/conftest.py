"""The server under test. What tests it imports nothing of ours and sees only its address, and the byte account."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from random import Random

import grpc
import pytest

from kinference.core.fleet import BackendSpec, EndpointSpec, Fleet
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules, TenantRule, UnmatchedTenant
from kinference.ids import Address, ObjectRef
from kinference.observe.metrics import Metrics
from kinference.picker.desk import Desk
from kinference.picker.limits import PickerLimits
from kinference.picker.service import picker_service
from kinference.picker.timer import ReclaimTimer
from kinference.runtime.clock import SystemClock
from kinference.vocabulary import Api
from kinference.wire.grpcio_server import GrpcioServer
from tests.conformance.picker.client import Client, Server

POOL, ASLEEP, CLOUD = ObjectRef("default", "gpu"), ObjectRef("default", "asleep"), ObjectRef("default", "cloud")
NAMED = TenantRule(("*",))
RULES = {
    "default": RoutingRules(),
    "strict": RoutingRules(
        tenants=(NAMED, TenantRule(("barred",), models=())), unmatched_tenant=UnmatchedTenant.REJECT
    ),
    "empty named": RoutingRules(
        tenants=(TenantRule(("",), models=("llama",)), TenantRule(("acme",), models=("gpt",))),
        unmatched_tenant=UnmatchedTenant.REJECT,
    ),
}


@dataclass(frozen=True, slots=True)
class Setup:
    """How the server is to be set up, for `parametrize(..., indirect=True)`."""

    rules: str = "default"
    limits: PickerLimits = PickerLimits()


@dataclass(frozen=True, slots=True)
class Served:
    target: str
    buffered_bytes: Callable[[], int]
    is_idle: Callable[[], bool]
    drain: Callable[[], None]


def fleet() -> Fleet:
    """Two ready endpoints serve `llama`, one that is not ready serves `sleeper`, a backend serves `gpt`."""
    found = Fleet()
    addresses = [Address("10.0.0.1:8000"), Address("10.0.0.2:8000")]
    found.set_pool(POOL, [EndpointSpec(POOL, address, models=("llama",)) for address in addresses])
    for address in addresses:
        found.set_ready(POOL, address, ready=True)
    found.set_pool(ASLEEP, [EndpointSpec(ASLEEP, Address("10.0.1.1:8000"), models=("sleeper",))])
    found.set_backends([BackendSpec(CLOUD, Api.OPENAI_CHAT, {"gpt": "gpt-long-provider-name"}, "/v1/chat")])
    return found


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    options = [("grpc.max_receive_message_length", -1)]
    async with grpc.aio.insecure_channel(server.target, options=options) as channel:
        yield Client(channel)


@pytest.fixture
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    given: dict[str, object] = getattr(request, "param", {})
    setup = Setup(str(given.get("rules", "default")), _limits(given))
    clock = SystemClock()
    desk = Desk(Router(fleet(), RULES[setup.rules], Random(1)), setup.limits, clock, Metrics(), Random(2))
    grpc_server = GrpcioServer("127.0.0.1:0", [picker_service(desk)])
    port = await grpc_server.start()
    timer = asyncio.ensure_future(ReclaimTimer(desk, clock).run())
    yield Served(f"127.0.0.1:{port}", lambda: desk.buffered_bytes, lambda: desk.is_idle, desk.drain)
    await grpc_server.drain(0)
    timer.cancel()
    await asyncio.gather(timer, return_exceptions=True)


def _limits(given: dict[str, object]) -> PickerLimits:
    changed = {name: value for name, value in given.items() if name != "rules"}
    return replace(PickerLimits(), **changed)  # type: ignore[arg-type] # the tests name fields and give their types

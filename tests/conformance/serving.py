"""Our Picker server on a free port, on any carrier, with setups that together meet the needs of every case."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from random import Random
from typing import ClassVar, Protocol

from kinference.conformance.case import Case
from kinference.conformance.target import MIB, Limits, Names, Security, Target, missing
from kinference.core.fleet import BackendSpec, EndpointSpec, Fleet
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules, TenantRule, UnmatchedTenant
from kinference.ids import Address, ObjectRef, Seconds
from kinference.observe.metrics import Metrics
from kinference.picker.desk import Desk
from kinference.picker.limits import PickerLimits
from kinference.picker.service import picker_service
from kinference.picker.timer import ReclaimTimer
from kinference.ports import Clock
from kinference.runtime.clock import SystemClock
from kinference.vocabulary import Api, Role
from kinference.wire.access import Access, Token
from kinference.wire.grpc_server import GrpcServer
from kinference.wire.grpcio_server import GrpcioServer
from kinference.wire.rpc import RpcService

POOL, CLOUD = ObjectRef("default", "gpu"), ObjectRef("default", "cloud")
STRICT = RoutingRules(
    tenants=(TenantRule(("*",)), TenantRule(("barred",), models=())), unmatched_tenant=UnmatchedTenant.REJECT
)
EMPTY_NAMED = RoutingRules(
    tenants=(TenantRule(("",)), TenantRule(("barred",), models=()), TenantRule(("acme",))),
    unmatched_tenant=UnmatchedTenant.REJECT,
)


class Carrier(Protocol):
    """A gRPC server over the seam `wire.rpc`."""

    async def start(self) -> int: ...
    async def drain(self, timeout: Seconds) -> None: ...


CARRIERS: Mapping[str, Callable[[RpcService], Carrier]] = {
    "own": lambda service: GrpcServer("127.0.0.1:0", [service]),
    "grpcio": lambda service: GrpcioServer("127.0.0.1:0", [service]),
}


@dataclass(frozen=True)
class Setup:
    """How a server is set up, and how the suite is told."""

    limits: PickerLimits = PickerLimits()
    rules: RoutingRules = STRICT
    empty_tenant: bool = False
    token: str = ""
    """What callers have to show; nothing where it is ""."""

    def target(self, port: int = 0) -> Target:
        limits = Limits(
            body_max=self.limits.body_max_bytes,
            buffer_max=self.limits.buffer_max_bytes,
            chunk_max=self.limits.chunk_max_bytes,
            push_idle=self.limits.push_idle_timeout,
            body_ttl=self.limits.body_ttl,
        )
        names = Names("llama", "acme", "barred", self.empty_tenant, "gpt", str(POOL))
        return Target("127.0.0.1", port, limits, names, Security(token=self.token))


ROOMY = Setup()
TIGHT = Setup(PickerLimits(body_max_bytes=16 * MIB, buffer_max_bytes=20 * MIB))
HASTY = Setup(PickerLimits(body_max_bytes=2 * MIB, buffer_max_bytes=5 * MIB, push_idle_timeout=0.8, body_ttl=1.0))
GUARDED = Setup(token="the-callers-token")
GENEROUS = Setup(rules=EMPTY_NAMED, empty_tenant=True)


def setup_for(case: Case) -> Setup:
    """The first setup that has what the case needs."""
    return next(setup for setup in (ROOMY, TIGHT, HASTY, GUARDED) if not missing(case.needs, setup.target()))


@dataclass
class Served:
    """A running server, and what its operator would see."""

    target: Target
    desk: Desk

    PATIENCE: ClassVar[Seconds] = 20.0

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(self.PATIENCE):
            while not condition():  # noqa: ASYNC110 - a black box signals nothing
                await asyncio.sleep(0.01)

    async def wait_until_idle(self) -> None:
        """Nothing is held any more, and every byte was given back."""
        with suppress(TimeoutError):
            await self.wait_until(lambda: self.desk.is_idle)
        assert self.desk.is_idle, "something is still held"
        assert self.desk.buffered_bytes == 0


@dataclass
class JumpingClock:
    """Time that passes when a test says so."""

    seconds: float = 1000.0

    def now(self) -> float:
        return self.seconds

    def wall(self) -> float:
        return self.seconds


def fleet() -> Fleet:
    """Two ready endpoints serve `llama`, a backend serves `gpt`."""
    found = Fleet()
    addresses = [Address("10.0.0.1:8000"), Address("10.0.0.2:8000")]
    found.set_pool(POOL, [EndpointSpec(POOL, address, models=("llama",)) for address in addresses])
    for address in addresses:
        found.set_ready(POOL, address, ready=True)
    found.set_backends([BackendSpec(CLOUD, Api.OPENAI_CHAT, {"gpt": "gpt-long-provider-name"}, "/v1/chat")])
    return found


@asynccontextmanager
async def served(
    setup: Setup,
    carrier: str | Callable[[RpcService], Carrier] = "own",
    clock: Clock | None = None,
    *,
    settles: bool = True,
) -> AsyncIterator[Served]:
    """A server for the length of a block. When the block ends well, nothing may be held any more, to the byte."""
    clock = clock or SystemClock()
    desk = Desk(Router(fleet(), setup.rules, Random(1)), setup.limits, clock, Metrics(), Random(2))
    access = Access([Token("suite", Role.PICKER, setup.token)] if setup.token else [])
    server = (CARRIERS[carrier] if isinstance(carrier, str) else carrier)(picker_service(desk, access))
    port = await server.start()
    timer = asyncio.ensure_future(ReclaimTimer(desk, clock).run())
    try:
        running = Served(setup.target(port), desk)
        yield running
        if settles:
            await running.wait_until_idle()
    finally:
        await server.drain(0)
        timer.cancel()
        await asyncio.gather(timer, return_exceptions=True)


def with_limits(setup: Setup, changed: Mapping[str, object]) -> Setup:
    return replace(setup, limits=replace(setup.limits, **changed))  # type: ignore[arg-type] # tests name fields and give their types

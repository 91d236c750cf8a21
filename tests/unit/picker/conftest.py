"""A desk on a real router over a small fleet: two ready endpoints that serve `llama`, one backend that serves `gpt`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

import pytest

from kinference.core.fleet import BackendSpec, EndpointSpec, Fleet
from kinference.core.pick import Router
from kinference.core.policy import ModelRule, RoutingRules, Target, TargetKind, TenantRule
from kinference.ids import Address, ObjectRef
from kinference.observe.metrics import Metrics
from kinference.picker.desk import Desk
from kinference.picker.limits import PickerLimits
from kinference.vocabulary import Api

POOL = ObjectRef("default", "gpu")
BACKEND = ObjectRef("default", "cloud")


@dataclass
class ManualClock:
    """Time that passes when a test says so."""

    monotonic: float = 1000.0

    def now(self) -> float:
        return self.monotonic

    def wall(self) -> float:
        return self.monotonic + 1_700_000_000.0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def advance(clock: ManualClock) -> Callable[[float], None]:
    def advance(seconds: float) -> None:
        clock.monotonic += seconds

    return advance


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def fleet() -> Fleet:
    fleet = Fleet()
    addresses = [Address("10.0.0.1:8000"), Address("10.0.0.2:8000")]
    fleet.set_pool(POOL, [EndpointSpec(POOL, address, models=("llama",)) for address in addresses])
    for address in addresses:
        fleet.set_ready(POOL, address, ready=True)
    fleet.set_backends([BackendSpec(BACKEND, Api.OPENAI_CHAT, {"gpt": "gpt-long-provider-name"}, "/v1/chat")])
    return fleet


@pytest.fixture
def rules() -> RoutingRules:
    return RoutingRules(
        models=(ModelRule("small", (Target(TargetKind.POOL, POOL, model="llama"),)),),
        tenants=(TenantRule(("barred",), models=()),),
    )


@pytest.fixture
def router(fleet: Fleet, rules: RoutingRules) -> Router:
    return Router(fleet, rules, Random(5))


@pytest.fixture
def limits() -> PickerLimits:
    return PickerLimits(body_max_bytes=4096, buffer_max_bytes=10_000, chunk_max_bytes=2048, pull_chunk_max_bytes=512)


@pytest.fixture
def desk(router: Router, limits: PickerLimits, clock: ManualClock, metrics: Metrics) -> Iterator[Desk]:
    """Whatever a test leaves behind, time alone gives it back, to the byte; all but pushes, which their streams end."""
    desk = Desk(router, limits, clock, metrics, Random(11))
    yield desk
    for stream_id in tuple(desk._bodies._live):
        desk.discard(stream_id)
    for _ in range(4):
        clock.monotonic += limits.ticket_ttl
        while desk.expire():
            pass
    assert desk.buffered_bytes == 0
    assert desk.is_idle
    assert desk.deadline() is None

"""A fleet of make-believe engines behind `ports.Upstream`, and a clock that tests move."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from kinference.core.fleet import Endpoint, EndpointSpec, Fleet
from kinference.errors import KinferenceError, UpstreamUnreachable
from kinference.ids import Address, ObjectRef
from kinference.ports import Headers, Upstream, UpstreamAnswer, UpstreamRequest
from kinference.vocabulary import Engine

POOL = ObjectRef("default", "pool")
HERE = Address("10.0.0.1:8000")


class ManualClock:
    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return 1e9 + self.time


@dataclass
class FakeAnswer(UpstreamAnswer):
    is_ready = False
    status: int = 200
    body: bytes = b""
    headers: Headers = ()
    repeats: int = 1
    closed: int = 0

    async def chunks(self) -> AsyncIterator[bytes]:
        for _ in range(self.repeats):
            yield self.body

    async def close(self) -> None:
        self.closed += 1


Page = FakeAnswer | KinferenceError | None
"""None hangs."""


@dataclass
class FakeUpstream(Upstream):
    """Answers by URL; what is not there is unreachable."""

    pages: dict[str, Page] = field(default_factory=dict)
    requests: list[UpstreamRequest] = field(default_factory=list)
    answered: Callable[[str], None] = lambda _url: None

    async def send(self, request: UpstreamRequest) -> FakeAnswer:
        url = request.origin + request.target
        self.requests.append(request)
        page = self.pages.get(url, UpstreamUnreachable(f"{request.origin} is unreachable"))
        if page is None:
            await asyncio.Event().wait()
        if isinstance(page, KinferenceError):
            raise page
        assert page is not None
        self.answered(url)
        return page

    def engine(self, address: str = HERE, *, prefix: str = "", **pages: Page) -> None:
        """Set pages of an engine by their last word: `health`, `models`, `metrics`."""
        paths = {"health": "/health", "models": "/v1/models", "metrics": "/metrics"}
        for name, page in pages.items():
            self.pages[f"http://{address}{prefix}{paths[name]}"] = page

    def asked(self, path: str) -> int:
        return sum(request.target == path for request in self.requests)


def models(*names: str, owner: str = "vllm", length: int | None = 4096) -> FakeAnswer:
    cards = [{"id": name, "object": "model", "owned_by": owner, "max_model_len": length} for name in names]
    return FakeAnswer(200, json.dumps({"object": "list", "data": cards}).encode())


def vllm_metrics(waiting: int = 0, running: int = 0) -> FakeAnswer:
    text = f'vllm:num_requests_waiting{{engine="0"}} {waiting}.0\nvllm:num_requests_running{{engine="0"}} {running}.0\n'
    return FakeAnswer(200, text.encode())


def spec(address: str = HERE, *, engine: Engine = Engine.AUTO, names: tuple[str, ...] | None = None) -> EndpointSpec:
    return EndpointSpec(POOL, Address(address), engine=engine, models=names)


def fleet_of(*specs: EndpointSpec) -> Fleet:
    fleet = Fleet()
    fleet.set_pool(POOL, specs)
    return fleet


def only(fleet: Fleet) -> Endpoint:
    (endpoint,) = fleet.endpoints()
    return endpoint

"""The outside of the gateway, scripted: what stands behind its ports in unit tests."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from kinference.errors import BudgetExceeded, ClientGone, KinferenceError, UpstreamCut
from kinference.gateway.backends import BackendRoute, Directory, EndpointRoute, ServedModel
from kinference.gateway.options import Outside
from kinference.ids import Address, ObjectRef, ResponseId
from kinference.observe.metrics import Metrics
from kinference.ports import (
    FinalTokenReport,
    FirstTokenReport,
    Headers,
    LocalTarget,
    PickArguments,
    PickResult,
    Placed,
    Placing,
    ProviderTarget,
    Upstream,
    UpstreamAnswer,
    UpstreamRequest,
)
from kinference.shapes.translate import WayBack
from kinference.vocabulary import AbortReason, Api, Outcome, StreamUsage

JSON: Headers = ((b"content-type", b"application/json"),)
EVENTS: Headers = ((b"content-type", b"text/event-stream"),)
ENGINE_A, ENGINE_B = LocalTarget(Address("10.0.0.1:8000")), LocalTarget(Address("10.0.0.2:8000"))
PROVIDER = ProviderTarget(ObjectRef("default", "cloud"))
PROVIDER_KEY = "sk-ours-secret"


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return self.time


class FakeExchange:
    """One client request, and everything that the handler did to its answer."""

    def __init__(
        self,
        path: str,
        body: Sequence[bytes] = (),
        *,
        method: str = "POST",
        headers: Headers = (),
        leaves_after_writes: int | None = None,
        query: str = "",
    ) -> None:
        self.method, self.path, self.query, self.headers = method, path, query, headers
        self.peer, self.accepted_at = "127.0.0.1", 100.0
        self.peer_names: Sequence[str] = ()
        self._body, self._leaves_after = body, leaves_after_writes
        self.body_read = 0
        self.status: int | None = None
        self.sent_headers: Headers = ()
        self.written: list[bytes] = []
        self.is_finished = self.is_aborted = False

    def arrived(self) -> bytes | None:
        return None

    async def body(self) -> AsyncIterator[bytes]:
        for chunk in self._body:
            self.body_read += 1
            yield chunk

    async def start(self, status: int, headers: Headers) -> None:
        assert self.status is None, "one head per answer"
        self.status, self.sent_headers = status, headers

    def send(self, chunk: bytes) -> bool:
        assert self.status is not None
        assert not self.is_finished
        if self._leaves_after is not None and len(self.written) >= self._leaves_after:
            raise ClientGone("left")
        self.written.append(chunk)
        return True

    async def drained(self) -> None: ...

    async def write(self, chunk: bytes) -> None:
        if not self.send(chunk):
            await self.drained()

    async def finish(self) -> None:
        assert not self.is_finished
        self.is_finished = True

    def abort(self) -> None:
        self.is_aborted = True

    @property
    def answer(self) -> bytes:
        return b"".join(self.written)

    def field(self, name: bytes) -> bytes | None:
        return next((value for field_, value in self.sent_headers if field_ == name), None)


class FakeAnswer(UpstreamAnswer):
    """What a destination answers. A chunk that is an error is raised in its place."""

    is_ready = False
    status = 0
    headers: Headers = ()

    def __init__(
        self, status: int = 200, headers: Headers = JSON, chunks: Sequence[bytes | KinferenceError] = (b"{}",)
    ) -> None:
        self.status, self.headers = status, headers
        self._chunks = iter(chunks)
        self.on_chunk: Callable[[], None] = lambda: None
        self.is_closed = False

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            self.on_chunk()
            if isinstance(chunk, KinferenceError):
                raise chunk
            yield chunk

    async def close(self) -> None:
        self.is_closed = True


class FakeUpstream(Upstream):
    """Answers each request with the next of its script."""

    def __init__(self, *script: FakeAnswer | KinferenceError) -> None:
        self._script: Iterator[FakeAnswer | KinferenceError] = iter(script)
        self.requests: list[UpstreamRequest] = []

    async def send(self, request: UpstreamRequest) -> FakeAnswer:
        self.requests.append(request)
        step = next(self._script)
        if isinstance(step, KinferenceError):
            raise step
        return step

    @property
    def body(self) -> bytes:
        """The body of the last request."""
        return b"".join(self.requests[-1].body)

    def field(self, name: bytes) -> list[bytes]:
        """A header of the last request, as often as it was sent."""
        return [value for field_, value in self.requests[-1].headers if field_ == name]


class FakePicker:
    """Picks by script and hands every body back as it came. The last step repeats."""

    def __init__(self, *script: PickResult | LocalTarget | ProviderTarget | KinferenceError) -> None:
        self._script = list(script) or [ENGINE_A]
        self.room = 1 << 30
        self.held = 0
        self.usage: StreamUsage | None = None
        self.streams: bool | None = None
        self.way_back: WayBack | None = None
        self.pushed: list[bytes] = []
        self.picks: list[PickArguments] = []
        self.first: list[FirstTokenReport] = []
        self.final: list[FinalTokenReport] = []
        self.aborted: list[tuple[ResponseId, AbortReason]] = []

    def make_room(self, size: int) -> None:
        if self.held + size > self.room:
            raise BudgetExceeded("server-wide budget")

    def hold(self, size: int) -> None:
        self.make_room(size)
        self.held += size

    def let_go(self, size: int) -> None:
        self.held -= size

    async def place(self, body: bytes, arguments: PickArguments) -> Placed:
        self.pushed.append(body)
        self.picks.append(arguments)
        step = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        if isinstance(step, KinferenceError):
            raise step
        if isinstance(step, PickResult):
            return Placed(step)
        picked = PickResult(Outcome.OK, "", "m", step, ResponseId(len(self.pushed)))
        return Placed(picked, body, self.usage, self.way_back, self.streams)

    def report_first_token(self, report: FirstTokenReport) -> None:
        self.first.append(report)

    def report_final_token(self, report: FinalTokenReport) -> None:
        self.final.append(report)

    def abort(self, response_id: ResponseId, reason: AbortReason, detail: str = "") -> None:
        self.aborted.append((response_id, reason))


class Instant(FakePicker):
    """Picks at once."""

    def place(self, body: bytes, arguments: PickArguments) -> Placed | Placing:  # type: ignore[override] # at once
        placing = super().place(body, arguments)
        try:
            placing.send(None)
        except StopIteration as over:
            return cast("Placed", over.value)
        raise AssertionError("a fake picker does not wait")


def directory(*models: str) -> Directory:
    """Every endpoint, of which the second extends Chat, one provider and the given models."""
    routes = {PROVIDER.backend: BackendRoute(PROVIDER.backend, "https://cloud.test/v1", PROVIDER_KEY, Api.OPENAI_CHAT)}
    served = tuple(ServedModel(name) for name in models or ("m",))

    def locate(address: Address) -> EndpointRoute:
        return EndpointRoute(f"http://{address}", extends_chat=address == ENGINE_B.address)

    return Directory(locate, routes.get, lambda: served)


@dataclass
class World:
    """The gateway's outside, each part within reach of the test."""

    picker: FakePicker = field(default_factory=FakePicker)
    upstream: FakeUpstream = field(default_factory=FakeUpstream)
    clock: ManualClock = field(default_factory=ManualClock)
    metrics: Metrics = field(default_factory=Metrics)
    directory: Directory = field(default_factory=directory)

    @property
    def outside(self) -> Outside:
        return Outside(self.picker, self.upstream, self.clock, self.metrics, self.directory)


CUT = UpstreamCut("http://10.0.0.1:8000 broke its answer off")

"""Protocols of the outside: the clock, the picker as the gateway sees it, and the HTTP upstream.

Implementations live above (`picker/`, `wire/`, `runtime/`); nobody below the composition root knows which is used.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from kinference.errors import KinferenceError
from kinference.ids import Address, ObjectRef, ResponseId, Seconds, StreamId
from kinference.vocabulary import AbortReason, Loss, Outcome, QosClass, StreamUsage

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
"""HTTP fields in wire order, names in lower case, values without surrounding white space."""


class Clock(Protocol):
    """Time as the core is told it."""

    def now(self) -> Seconds:
        """Monotonic seconds."""
        ...

    def wall(self) -> Seconds:
        """Seconds since the Unix epoch, for logs and people only."""
        ...


# --- the picker ---------------------------------------------------------------------------------


class PushMetadata(msgspec.Struct, frozen=True):
    """What travels beside a pushed body (`kinference-*` call metadata)."""

    client_request_id: str = ""
    declared_length: int | None = None


class PushedBody(msgspec.Struct, frozen=True):
    """A complete body, ready for Pick."""

    stream_id: StreamId
    total_bytes: int


class LocalTarget(msgspec.Struct, frozen=True):
    """An engine endpoint."""

    address: Address


class ProviderTarget(msgspec.Struct, frozen=True):
    """A backend whose URL and credential the caller resolves; `path` replaces the client's, "" leaves it alone."""

    backend: ObjectRef
    path: str = ""


class PickArguments(msgspec.Struct, frozen=True, gc=False):
    """One PickRequest, with the two optional extensions of the contract's metadata."""

    stream_id: StreamId
    """0 where the body comes with the call."""
    tenant: str
    client_request_id: str = ""
    pool: ObjectRef | None = None
    pool_resource_version: str = ""
    qos: QosClass = QosClass.INTERACTIVE
    request_path: str = ""
    translates: bool = False
    loss: Loss = Loss.WARN
    """What becomes of a request that a translation would take something from."""
    failed: frozenset[LocalTarget | ProviderTarget] = frozenset()
    attempts_left: int = 1
    """How often the request can still be sent, this time included."""
    """Where this very request has been in vain; only a caller in the same process can say so."""


class Allowance(msgspec.Struct, frozen=True):
    """What is left of one of a tenant's limits for a minute."""

    limit: int
    remaining: int
    full_in: Seconds


class PickResult(msgspec.Struct, frozen=True):
    """One PickResponse. OK and DEGRADED carry a destination and a response id; refusals carry neither.

    What follows `body_total_bytes` only a caller in the same process gets to know.
    """

    outcome: Outcome
    reason: str = ""
    requested_model: str = ""
    destination: LocalTarget | ProviderTarget | None = None
    response_id: ResponseId = ResponseId(0)
    body_total_bytes: int = 0
    retry_after: Seconds | None = None
    """When a refusal may be over, where that is known."""
    requests: Allowance | None = None
    tokens: Allowance | None = None


class FirstTokenReport(msgspec.Struct, frozen=True):
    """The first response byte, as the caller saw it; `upstream_status` is the HTTP status."""

    response_id: ResponseId
    observed_ttft_ms: int
    upstream_status: int


class FinalTokenReport(msgspec.Struct, frozen=True):
    """The completed response. `cached_tokens` None means not reported; 0 is a measured miss."""

    response_id: ResponseId
    model: str
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None = None
    itl_bucket_counts: tuple[int, ...] = ()
    itl_bucket_layout: int = 0
    broken: bool = False
    """The destination broke the answer off; only a caller in the same process can say so."""


class Placed(msgspec.Struct, frozen=True):
    """What was picked for a body, and the body as its destination takes it; b"" where nobody takes it."""

    picked: PickResult
    body: bytes = b""
    usage: StreamUsage | None = None
    """Whether the body asks for the usage of its stream, where that was looked at."""
    way_back: object = None
    """What leads the answer to a translated body back, a `WayBack` of `shapes.translate`; None where the picker is
    elsewhere.
    """
    streams: bool | None = None
    """Whether the body asks for a stream, where that was looked at."""


class Placing(Awaitable[Placed], Protocol):
    """A body that has to wait for its place. Awaited, or closed where nobody will."""

    def close(self) -> None:
        """Nobody waits for it: it takes no place. Harmless when it is over."""
        ...


class Picker(Protocol):
    """The Picker service to a gateway, which holds each body itself: direct call when in process, gRPC when apart.

    Raises the picker's part of `kinference.errors`; routing outcomes are values in `PickResult`. A report is told and
    forgotten: whoever carries it further sees to it alone, since no answer to a client depends on it.
    """

    def make_room(self, size: int) -> None:
        """Raise BudgetExceeded unless so many more bytes can be held."""
        ...

    def hold(self, size: int) -> None:
        """So many bytes of a body came in. Raises BudgetExceeded, and then does not count them."""
        ...

    def let_go(self, size: int) -> None:
        """The body is placed, or will not be."""
        ...

    def place(self, body: bytes, arguments: PickArguments) -> Placed | Placing:
        """Push, pick and pull in one: at once where nothing has to be waited for. `arguments` name no body."""
        ...

    def report_first_token(self, report: FirstTokenReport) -> None: ...
    def report_final_token(self, report: FinalTokenReport) -> None: ...
    def abort(self, response_id: ResponseId, reason: AbortReason, detail: str = "") -> None: ...


# --- the upstream -------------------------------------------------------------------------------


class UpstreamTimeouts(msgspec.Struct, frozen=True):
    """How long a destination may stay silent in each phase."""

    connect: Seconds = 5.0
    first_byte: Seconds = 600.0
    between_chunks: Seconds = 300.0


class UpstreamRequest(msgspec.Struct, frozen=True):
    """One HTTP request to a destination. `origin` is `scheme://host:port`; `target` is path and query."""

    method: str
    origin: str
    target: str
    headers: Headers
    body: Sequence[bytes] = ()
    timeouts: UpstreamTimeouts = UpstreamTimeouts()


class Sink(Protocol):
    """Where an answer is poured."""

    def take(self, chunk: bytes) -> bool:
        """Take some of it as it arrives. Returns whether more is welcome: if not, `ready` comes first."""
        ...

    async def ready(self) -> None:
        """Wait until more is welcome. Raises what came to nothing in `take`."""
        ...


class Follower(Protocol):
    """Who is given an answer without waiting for it."""

    def take(self, chunk: bytes) -> bool:
        """Take some of it, in the very call that brings it. False where nothing more is to be handed over for now: it
        has left then, and whoever goes on reads the rest.
        """
        ...

    def ended(self, *, is_cut: bool) -> None:
        """Nothing more comes. Where it broke off whoever reads on is told of it."""
        ...


class UpstreamAnswer(Protocol):
    """An answer whose head has arrived; its bytes come as they arrive, never held back to fill a buffer."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Headers: ...
    @property
    def is_ready(self) -> bool:
        """Whether the next chunk, or the end, is known to be there: reading on does not wait."""
        ...

    def arrived(self) -> bytes | None:
        """The whole body, where all of it is known to be here; else None, and `chunks` gives it. Asked once, first."""
        return None

    def follow(self, follower: Follower) -> bool:  # noqa: ARG002 - an answer that can always be waited for
        """Hand over what is here, and what comes as it comes. False where that cannot be: it is to be waited for."""
        return False

    def leave(self) -> None:
        """Hand nothing more over; harmless where nobody follows."""
        return

    def chunks(self) -> AsyncIterator[bytes]:
        """Body bytes that have not been taken yet, transfer coding removed, content coding left alone.

        Raises UpstreamCut when the answer breaks off, UpstreamTimeout when it stalls.
        """
        ...

    def pour(self, sink: Sink) -> Coroutine[Any, Any, None]:
        """Give all that `chunks` would to the sink. Raises what `chunks` and the sink raise."""
        return _poured(self.chunks(), sink)

    def close(self) -> Awaitable[None]:
        """Give the connection back if the answer was read to its end, else close it. Safe to call twice."""
        ...


async def _poured(chunks: AsyncIterator[bytes], sink: Sink) -> None:
    async for chunk in chunks:
        sink.take(chunk)
        await sink.ready()


Told: TypeAlias = Callable[[UpstreamAnswer | KinferenceError | None], None]
"""Gets an answer whose head has arrived, or UpstreamTimeout or UpstreamCut; None where `send` is to try it anew."""


class Asked(Protocol):
    """A request on its way, whose answer will be told."""

    def drop(self) -> None:
        """Nobody waits for it any more: tell nothing."""
        ...


class Upstream(Protocol):
    """A pool of HTTP connections to destinations."""

    def ask(self, request: UpstreamRequest, told: Told) -> Asked | None:  # noqa: ARG002 - an upstream that can always waits
        """Send over a connection that is open, and tell of the answer later. None where there is none that can be used
        so: `send` is to be called. Raises UpstreamUnreachable.
        """
        return None

    async def send(self, request: UpstreamRequest) -> UpstreamAnswer:
        """Send and wait for the head of the answer. Follows no redirect, keeps no cookie, reads no proxy variable.

        Raises UpstreamUnreachable, UpstreamTimeout or UpstreamCut.
        """
        ...

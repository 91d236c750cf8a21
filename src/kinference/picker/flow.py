"""One request as the picker saw it: what the admin port shows and the log line tells. It holds no body text."""

from collections import deque
from itertools import islice

from kinference.core.decision import BackendChoice, Decision, EndpointChoice
from kinference.ids import ResponseId, Seconds
from kinference.packed import packed, unpacked
from kinference.ports import FinalTokenReport, PickArguments
from kinference.structs import EntityLeaf


class Flow(EntityLeaf):
    """One answered Pick, and what then came of it."""

    picked_at: Seconds
    """Wall clock."""
    arguments: PickArguments
    requested_model: str
    decision: Decision
    remote: bool
    """Its caller speaks gRPC; a request of the gateway in this process has a log line of its own."""
    observed_ttft_ms: int | None = None
    upstream_status: int | None = None
    final: FinalTokenReport | None = None
    abort_detail: str = ""
    response_id: ResponseId = ResponseId(0)
    """Of its ticket, where it has one. No log and no page tells it."""
    ended: str = ""
    """How: "refused", "final", "expired", or an abort's reason; "" while it runs."""

    @property
    def destination(self) -> str:
        return destination(self.decision.choice)

    def fields(self) -> dict[str, object]:
        """What a log line says of it."""
        arguments, decision, final = self.arguments, self.decision, self.final
        return {
            "client_request_id": arguments.client_request_id,
            "tenant": arguments.tenant,
            "qos_class": arguments.qos.name.lower(),
            "pool": str(arguments.pool) if arguments.pool else "",
            "pool_resource_version": arguments.pool_resource_version,
            "model": self.requested_model,
            "outcome": decision.outcome.name.lower(),
            "reason": decision.reason,
            "destination": self.destination,
            "expected_ttft_ms": round(decision.expected_ttft_ms, 1),
            "observed_ttft_ms": self.observed_ttft_ms,
            "upstream_status": self.upstream_status,
            "prompt_tokens": final.prompt_tokens if final else None,
            "completion_tokens": final.completion_tokens if final else None,
            "cached_tokens": final.cached_tokens if final else None,
            "ended": self.ended,
            "abort_detail": self.abort_detail,
        }


class FlowHistory:
    """The last flows, newest first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._flows: deque[Flow | bytes] = deque()

    def add(self, flow: Flow) -> Flow | None:
        """One more. Returns the one that leaves for it and runs on."""
        oldest = self._flows.pop() if len(self._flows) == self._limit else None
        self._flows.appendleft(flow)
        return oldest if isinstance(oldest, Flow) and not oldest.ended else None

    def pack(self) -> None:
        """Keep each that has ended in one object. They were made in between all that has gone since, a dozen lists for
        each, and wherever one of them stays, the allocator keeps a megabyte.
        """
        self._flows = deque(packed(flow) if isinstance(flow, Flow) and flow.ended else flow for flow in self._flows)

    def newest(self, limit: int) -> tuple[Flow, ...]:
        return tuple(flow if isinstance(flow, Flow) else unpacked(flow) for flow in islice(self._flows, limit))


def destination(choice: EndpointChoice | BackendChoice | None) -> str:
    """A choice's name, as metrics, logs and people know it; "" for none."""
    match choice:
        case EndpointChoice():
            return f"{choice.pool}/{choice.address}"
        case BackendChoice():
            return str(choice.backend)
        case None:
            return ""

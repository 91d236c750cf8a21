"""A refusal's inputs as plain values, from which it can be made again: the same filters, the same rule, the same words.

What is kept is the request without its prompt, its session and its salt, and everything that filters and rules read of
the destinations. Refusals at a tenant's own limits are not among them: they are of that moment's use, and say so.
"""

from collections.abc import Iterable
from dataclasses import replace
from math import ceil

import msgspec
from msgspec.structs import replace as replaced

from kinference.core.candidates import Options
from kinference.core.decision import Decision
from kinference.core.fleet import BackendSpec, Endpoint, EndpointSpec
from kinference.core.health import Circuit
from kinference.core.policy import Target, TenantRule, UnmatchedTenant
from kinference.core.reasons import REASON_MAX, no_workers
from kinference.core.request import Request
from kinference.core.roster import Destination, Roster
from kinference.ids import Seconds
from kinference.vocabulary import Engine, Outcome

ANOTHER_MODEL = "\0"
"""Stands for all that an endpoint serves and nobody asked for."""


class RecordedCircuit(msgspec.Struct, frozen=True):
    """Whether a destination is left alone, and until when."""

    closed: bool
    unusable: bool
    reason: str
    tried_at: Seconds

    def restored(self) -> Circuit:
        return Circuit(closed=self.closed, unusable=self.unusable, reason=self.reason, _until=self.tried_at)


class RefusedEndpoint(msgspec.Struct, frozen=True):
    """One endpoint, by what filters read of it."""

    spec: EndpointSpec
    engine: Engine
    ready: bool
    draining: bool
    models: tuple[str, ...]
    """Those of the asked names that it serves; one other name where it serves others."""
    max_model_tokens: int | None
    circuit: RecordedCircuit


class RefusedBackend(msgspec.Struct, frozen=True):
    """One backend, by what filters read of it."""

    spec: BackendSpec
    circuit: RecordedCircuit


class RecordedTraits(msgspec.Struct, frozen=True):
    """What tokens are reckoned by."""

    model: str
    bytes_per_token: float
    output_tokens: float


class Refusal(msgspec.Struct, frozen=True):
    """One refusal: what went in, and what was said."""

    at: Seconds
    outcome: Outcome
    reason: str
    request: Request
    rule: TenantRule | None
    unmatched: UnmatchedTenant
    targets: tuple[Target, ...] | None
    """Of the model's rule; None where no rule speaks of it."""
    is_pool_served: bool
    endpoints: tuple[RefusedEndpoint, ...]
    backends: tuple[RefusedBackend, ...]
    traits: tuple[RecordedTraits, ...]

    @property
    def size(self) -> int:
        """How much memory it takes, in destinations."""
        return len(self.endpoints) + len(self.backends)


class RulesApplied(msgspec.Struct, frozen=True):
    """The rules that a request fell under."""

    rule: TenantRule | None
    unmatched: UnmatchedTenant
    targets: tuple[Target, ...] | None


def refuse(request: Request, options: Options, now: Seconds) -> Decision:
    """Nobody is left: why, and when to try again where that is known."""
    outcome, reason = no_workers(request, options)
    rejected = tuple(options.rejected)
    if not options.tripped:
        return Decision(outcome, reason, _rejected=rejected)
    wait = float(max(1, ceil(min(circuit.retry_in(now) for circuit in options.tripped))))
    return Decision(outcome, _with_hint(reason, wait), retry_after=wait, _rejected=rejected)


def _with_hint(reason: str, wait: Seconds) -> str:
    hint = f"; try again in {wait:.0f} s"
    return reason[: REASON_MAX - len(hint)] + hint


def record_refusal(request: Request, decision: Decision, roster: Roster, rules: RulesApplied, now: Seconds) -> Refusal:
    """The values as they are now; nothing of what changes later is kept hold of."""
    names = {request.model, *(target.model for target in rules.targets or ())}
    backends = [one for one in roster.backends if one.backend is not None]
    served = {*names, *(name for one in backends if one.backend for name in one.backend.models.values())}
    return Refusal(
        at=now,
        outcome=decision.outcome,
        reason=decision.reason,
        request=replaced(request, prompt=(), session="", salt=""),
        rule=rules.rule,
        unmatched=rules.unmatched,
        targets=rules.targets,
        is_pool_served=request.pool is not None and roster.has_pool(request.pool),
        endpoints=tuple(_endpoint(one, one.endpoint, names) for one in roster.endpoints if one.endpoint is not None),
        backends=tuple(_backend(one, one.backend) for one in backends if one.backend is not None),
        traits=tuple(
            RecordedTraits(name, traits.bytes_per_token, traits.output_tokens)
            for name in sorted(served)
            for traits in [roster.traits(name)]
        ),
    )


def _endpoint(destination: Destination, endpoint: Endpoint, names: Iterable[str]) -> RefusedEndpoint:
    models = tuple(sorted(endpoint.models.intersection(names)))
    return RefusedEndpoint(
        spec=endpoint.spec,
        engine=endpoint.engine,
        ready=endpoint.ready,
        draining=endpoint.draining,
        models=models or ((ANOTHER_MODEL,) if endpoint.models else ()),
        max_model_tokens=endpoint.max_model_tokens,
        circuit=_circuit(destination),
    )


def _backend(destination: Destination, spec: BackendSpec) -> RefusedBackend:
    """No filter reads the revision, which is reckoned from a credential."""
    return RefusedBackend(replace(spec, revision=""), _circuit(destination))


def _circuit(destination: Destination) -> RecordedCircuit:
    circuit = destination.circuit
    return RecordedCircuit(circuit.closed, circuit.unusable, circuit.reason, circuit.tried_at)

"""What the admin port shows of the running state, as plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from kinference.core.admission import Admission
from kinference.core.decision import Explanation
from kinference.core.fleet import Fleet
from kinference.core.limits import Account
from kinference.core.pick import Router
from kinference.core.recording import Recording
from kinference.core.refusal import Refusal
from kinference.ids import Seconds
from kinference.picker.desk import Desk
from kinference.picker.flow import Flow


def decision_views(desk: Desk, router: Router, limit: int) -> Sequence[Mapping[str, object]]:
    """The newest decisions, each with everything that was weighed."""
    return [_decision_view(flow, router.explain(flow.decision)) for flow in desk.flows(limit)]


def recording_views(router: Router, limit: int) -> Sequence[Recording]:
    """The newest recorded decisions, as `kinference explain` reads them."""
    return router.recordings.newest(limit)


def refusal_views(router: Router, limit: int) -> Sequence[Refusal]:
    """The newest recorded refusals, as `kinference explain` reads them."""
    return router.refusals.newest(limit)


def _decision_view(flow: Flow, explanation: Explanation) -> Mapping[str, object]:
    picked_at = datetime.fromtimestamp(flow.picked_at, UTC).isoformat(timespec="milliseconds")
    decision = flow.decision
    estimates = {"prompt_tokens_estimated": decision.prompt_tokens, "hit_tokens_expected": decision.hit_tokens}
    return {"picked_at": picked_at, **flow.fields(), **estimates, "explanation": explanation}


def tenant_views(router: Router, now: Seconds, after: str | None, limit: int) -> Sequence[Mapping[str, object]]:
    """Tenants with limits that have been active, by name: what each may use, and what it has used."""
    return [_tenant_view(account, now) for account in router.accounts.page(after, limit)]


def _tenant_view(account: Account, now: Seconds) -> Mapping[str, object]:
    requests, tokens = account.left(now)
    return {
        "tenant": account.tenant,
        "limits": account.limits,
        "in_flight": account.in_flight,
        "requests_left": None if requests is None else requests.remaining,
        "tokens_left": None if tokens is None else tokens.remaining,
        "spent_usd": account.spent_usd,
        "expected_usd": account.held_usd,
    }


def waiting_views(admission: Admission, now: Seconds) -> Sequence[Mapping[str, object]]:
    """Who waits for an engine to have room: by class and tenant, for how much work and how long, and why."""
    return [
        {
            "destinations": one.pools,
            "requests": {qos.name.lower(): count for qos, count in one.requests.items()},
            "tenants": one.tenants,
            "work_ms": one.work_ms,
            "longest_s": one.longest_s,
            "why": one.why,
            "bound_ms": one.bound_ms,
            "groups": [{**asdict(group), "qos": group.qos.name.lower()} for group in one.groups],
        }
        for one in admission.snapshot(now)
    ]


def unready_reason(fleet: Fleet, undiscovered: str | None = None, *, draining: bool) -> str | None:
    """None when at least one destination could serve; else what is missing and what to look at. `undiscovered` is why
    pools that are discovered may have no endpoint.
    """
    if draining:
        return "shutting down: what is under way finishes, nothing new is taken"
    endpoints = fleet.endpoints()
    serving = [endpoint for endpoint in endpoints if endpoint.ready and endpoint.models]
    if fleet.backends() or not all(endpoint.draining for endpoint in serving):
        return None
    if not endpoints and undiscovered is not None:
        return f"no endpoint is discovered: {undiscovered}"
    if not endpoints:
        return "no pool has an endpoint and there is no backend; add one to the configuration"
    if serving:
        return f"every endpoint drains: {', '.join(one.spec.address for one in serving[:8])}; end a drain or add one"
    ready = [endpoint.spec.address for endpoint in endpoints if endpoint.ready]
    if ready:
        return f"no models known at {', '.join(ready[:8])}; look at the engine's /v1/models, or set pools[].models"
    down = ", ".join(endpoint.spec.address for endpoint in endpoints[:8])
    return f"no endpoint answers its health check: {down}; is the engine up, and the URL right?"

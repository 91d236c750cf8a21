"""The one line that a refusal gives: what was removed and why, and what would help. No body text, at most 512 signs."""

from kinference.core.candidates import Options, named
from kinference.core.filters import Verdict
from kinference.core.request import Request
from kinference.core.rulebook import shown
from kinference.ids import ObjectRef
from kinference.vocabulary import Outcome

REASON_MAX = 512
CAUSES_SHOWN = 2
_BY_RULE = {
    Verdict.OVER_BUDGET: ("quota: budget:", "has no money left for any destination"),
    Verdict.FORBIDDEN: ("policy:", "may not use any destination"),
    Verdict.UNPRICED: ("policy:", "minds money, and nobody knows the price"),
}
"""Who could serve, and is kept from it by the tenant's own rule."""
HOPELESS = {Verdict.WRONG_API: "api: ", Verdict.LACKS: "needs: ", Verdict.TOO_LONG: "context: "}
"""What only another request can help, and how its reason begins."""


def unknown_pool(pool: ObjectRef) -> str:
    """The request names a pool that is not ours."""
    return f"pool {shown(str(pool))} is not served here; name a configured pool or none"


def no_workers(request: Request, options: Options) -> tuple[Outcome, str]:
    """The outcome and its reason when every destination was removed. A reason that begins with `context:`, `api:` or
    `needs:` is one that no waiting mends.
    """
    counts, model = options.verdicts, shown(request.model)
    where = f" in pool {shown(str(request.pool))}" if request.pool is not None else ""
    for verdict, why in _BY_RULE.items():
        if verdict in counts:
            reason = f"{why[0]} tenant {shown(request.tenant)} {why[1]} of model {model}; {verdict.remedy}"
            return Outcome.POLICY_REJECTED, reason[:REASON_MAX]
    candidates = {verdict: counts[verdict] for verdict in Verdict if verdict in counts}
    if not candidates:
        fix = "add one to its pool, or see why none is discovered"
        return Outcome.NO_WORKERS, f"model {model} has no endpoint{where}; {fix}"[:REASON_MAX]
    last = list(candidates)[-1]
    if last is not Verdict.NOT_SERVED:
        candidates.pop(Verdict.NOT_SERVED, None)
    is_hopeless = candidates.keys() <= HOPELESS.keys()
    prefix = HOPELESS[last] if is_hopeless else ""
    causes = ", ".join(f"{number} {_cause(verdict, options)}" for verdict, number in candidates.items())
    tripped = [one for one in options.rejected if one.verdict.startswith(Verdict.TRIPPED.cause)]
    details = "".join(f"; {one.destination}: {one.verdict}"[:120] for one in tripped[:CAUSES_SHOWN])
    reason = f"{prefix}no worker for model {model}{where}: {causes}{details}; {last.remedy}"
    return Outcome.NO_WORKERS, reason[:REASON_MAX]


def _cause(verdict: Verdict, options: Options) -> str:
    return f"{verdict.cause} {named(options.lacking)}" if verdict is Verdict.LACKS else verdict.cause

"""From a pushed body to a decision, and to the body as the decision's destination wants it."""

from typing import Final

import msgspec

from kinference.core.decision import BackendChoice, Decision, EndpointChoice
from kinference.core.filters import Verdict
from kinference.core.limits import Left
from kinference.core.pick import Router
from kinference.core.request import Request
from kinference.ids import ResponseId, Seconds
from kinference.picker.rewriting import Rewritten, rewrite
from kinference.picker.tickets import Ticket
from kinference.ports import Allowance, LocalTarget, PickArguments, PickResult, ProviderTarget
from kinference.shapes.detect import Parsed, parse
from kinference.shapes.lost import Untranslatable
from kinference.shapes.scan import BadBody, decode
from kinference.shapes.translate import reaches
from kinference.vocabulary import AbortReason, Api, Outcome, StreamUsage

REASON_MAX_CHARS: Final = 512
NO_TICKET: Final = ResponseId(0)


class _Named(msgspec.Struct):
    model: str = ""


_NAMED: Final = msgspec.json.Decoder(_Named)


class Chosen(msgspec.Struct, frozen=True):
    """A decision. `patched` is the body to hand back where that is not the one that was pushed; `path` replaces the
    client's where it is not "".
    """

    decision: Decision
    requested_model: str
    patched: bytes | None = None
    path: str = ""
    usage: StreamUsage = StreamUsage.SETTLED


def choose(router: Router, arguments: PickArguments, body: bytes, now: Seconds) -> Chosen:
    """Read the body, decide, and make it what the destination takes. A choice is in flight from here on.

    What cannot be translated is found out by trying: an API that it cannot be translated to is not chosen again.
    """
    try:
        parsed = parse(body, arguments.request_path)
    except BadBody as error:
        return Chosen(Decision(Outcome.BAD_REQUEST, str(error)), _readable_model(body))
    open_to = reaches(parsed.api, parsed.needs) if arguments.translates else frozenset()
    refusal: BadBody | None = None
    while True:
        decision = router.decide(_request(parsed, arguments, open_to), now)
        if decision.choice is None:
            return Chosen(_refused(router, decision, refusal), parsed.model)
        try:
            rewritten = rewrite(body, parsed, decision.choice, arguments)
        except BadBody as error:
            router.abort(decision.reservation, AbortReason.NOT_DISPATCHED, now)
            if not isinstance(error, Untranslatable) or not open_to:
                return Chosen(Decision(Outcome.BAD_REQUEST, str(error)), parsed.model)
            refusal, open_to = error, open_to - _of_shape(decision.choice, parsed.api)
        except BaseException:
            router.abort(decision.reservation, AbortReason.NOT_DISPATCHED, now)
            raise
        else:
            return _chosen(decision, parsed, rewritten)


def _chosen(decision: Decision, parsed: Parsed, rewritten: Rewritten) -> Chosen:
    return Chosen(decision, parsed.model, rewritten.body, rewritten.path, parsed.usage)


def _of_shape(choice: EndpointChoice | BackendChoice, client: Api) -> frozenset[Api]:
    """Every API whose bodies look like those of the choice."""
    shape = choice.api.shape if isinstance(choice, BackendChoice) else client.at_engines
    return frozenset(api for api in Api if api.shape is shape)


def _refused(router: Router, decision: Decision, refusal: BadBody | None) -> Decision:
    """Who could serve the request but for something in it is told of that, and not of missing capacity."""
    rejected = router.explain(decision).rejected
    if refusal is not None and any(one.verdict == Verdict.WRONG_API.cause for one in rejected):
        return Decision(Outcome.BAD_REQUEST, str(refusal))
    return decision


def answer(chosen: Chosen, name_max_chars: int, ticket: Ticket | None = None) -> PickResult:
    """The contract's answer. A refusal has no ticket."""
    decision = chosen.decision
    requests, tokens = decision.left or (None, None)
    return PickResult(
        outcome=decision.outcome,
        reason=decision.reason[:REASON_MAX_CHARS],
        requested_model=chosen.requested_model[:name_max_chars],
        destination=_target(decision.choice, chosen.path),
        response_id=NO_TICKET if ticket is None else ticket.response_id,
        body_total_bytes=0 if ticket is None else ticket.bytes_left,
        retry_after=decision.retry_after,
        requests=None if requests is None else _allowance(requests),
        tokens=None if tokens is None else _allowance(tokens),
    )


def _allowance(left: Left) -> Allowance:
    return Allowance(left.limit, left.remaining, left.full_in)


def _readable_model(body: bytes) -> str:
    """The model of a body that is wrong in some other way, "" when even that cannot be read."""
    try:
        return decode(_NAMED, body).model
    except BadBody:
        return ""


def _target(choice: EndpointChoice | BackendChoice | None, path: str) -> LocalTarget | ProviderTarget | None:
    match choice:
        case EndpointChoice():
            return LocalTarget(choice.address)
        case BackendChoice():
            return ProviderTarget(choice.backend, path)
        case None:
            return None


def _request(parsed: Parsed, arguments: PickArguments, open_to: frozenset[Api]) -> Request:
    return Request(
        model=parsed.model,
        api=parsed.api,
        prompt=parsed.prompt,
        prompt_bytes=parsed.prompt_bytes,
        output_tokens=parsed.output_tokens,
        streaming=parsed.streaming,
        needs=parsed.needs,
        qos=arguments.qos,
        tenant=arguments.tenant,
        pool=arguments.pool,
        session=parsed.session,
        salt=parsed.salt,
        reaches=open_to,
        attempts_left=arguments.attempts_left,
        failed=frozenset(one.address if isinstance(one, LocalTarget) else one.backend for one in arguments.failed),
    )

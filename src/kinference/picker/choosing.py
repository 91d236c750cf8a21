"""From a pushed body to a decision, and to the body as the decision's destination wants it."""

from dataclasses import dataclass
from typing import Final

import msgspec

from kinference.core.decision import BackendChoice, Decision, EndpointChoice
from kinference.core.pick import Router
from kinference.core.request import Request
from kinference.ids import Seconds
from kinference.ports import LocalTarget, PickArguments, PickResult, ProviderTarget
from kinference.shapes.detect import Parsed, parse
from kinference.shapes.patch import replace_model
from kinference.shapes.scan import BadBody, decode
from kinference.vocabulary import AbortReason, Outcome

REASON_MAX_CHARS: Final = 512


class _Named(msgspec.Struct):
    model: str = ""


_NAMED: Final = msgspec.json.Decoder(_Named)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A decision. `patched` is the body to hand back where that is not the one that was pushed."""

    decision: Decision
    requested_model: str
    patched: bytes | None = None


def choose(router: Router, arguments: PickArguments, body: bytes, now: Seconds) -> Chosen:
    """Read the body, decide, and put the chosen model's name into it. A choice is in flight from here on."""
    try:
        parsed = parse(body, arguments.request_path)
    except BadBody as error:
        return Chosen(Decision(Outcome.BAD_REQUEST, str(error)), _readable_model(body))
    decision = router.decide(_request(parsed, arguments), now)
    choice = decision.choice
    if choice is None or choice.model == parsed.model:
        return Chosen(decision, parsed.model)
    try:
        patched = replace_model(body, choice.model)
    except BadBody as error:
        router.abort(decision.reservation, AbortReason.NOT_DISPATCHED, now)
        return Chosen(Decision(Outcome.BAD_REQUEST, str(error)), parsed.model)
    except BaseException:
        router.abort(decision.reservation, AbortReason.NOT_DISPATCHED, now)
        raise
    return Chosen(decision, parsed.model, patched)


def answer(chosen: Chosen, name_max_chars: int) -> PickResult:
    """The contract's answer, without what only a ticket knows."""
    decision = chosen.decision
    return PickResult(
        outcome=decision.outcome,
        reason=decision.reason[:REASON_MAX_CHARS],
        requested_model=chosen.requested_model[:name_max_chars],
        destination=_target(decision.choice),
    )


def _readable_model(body: bytes) -> str:
    """The model of a body that is wrong in some other way, "" when even that cannot be read."""
    try:
        return decode(_NAMED, body).model
    except BadBody:
        return ""


def _target(choice: EndpointChoice | BackendChoice | None) -> LocalTarget | ProviderTarget | None:
    match choice:
        case EndpointChoice():
            return LocalTarget(choice.address)
        case BackendChoice():
            return ProviderTarget(choice.backend, choice.path)
        case None:
            return None


def _request(parsed: Parsed, arguments: PickArguments) -> Request:
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
        translates=arguments.translates,
        failed=frozenset(one.address if isinstance(one, LocalTarget) else one.backend for one in arguments.failed),
    )

"""From a pushed body to a decision, and to the body as the decision's destination wants it."""

from hashlib import blake2b
from typing import Final

import msgspec

from kinference.core.admission import Admission
from kinference.core.decision import BackendChoice, Decision, EndpointChoice
from kinference.core.filters import Verdict
from kinference.core.limits import Left
from kinference.core.pick import Router
from kinference.core.request import Request
from kinference.core.turns import Waiting
from kinference.ids import Address, ObjectRef, ResponseId, Seconds
from kinference.picker.rewriting import rewrite
from kinference.picker.tickets import Ticket
from kinference.ports import Allowance, LocalTarget, PickArguments, PickResult, ProviderTarget
from kinference.shapes.detect import Parsed, parse
from kinference.shapes.fields import Named
from kinference.shapes.hosted_tools import may_have_hosted
from kinference.shapes.lost import Untranslatable
from kinference.shapes.scan import BadBody, decode
from kinference.shapes.translate import WayBack, reaches
from kinference.structs import Frozen
from kinference.vocabulary import AbortReason, Api, Loss, Outcome, StreamUsage

REASON_MAX_CHARS: Final = 512
SALT_BYTES: Final = 16
NO_TICKET: Final = ResponseId(0)
NOWHERE: Final[frozenset[Address | ObjectRef]] = frozenset()
NO_APIS: Final[frozenset[Api]] = frozenset()


_NAMED: Final = msgspec.json.Decoder(Named)


class Chosen(Frozen, frozen=True):
    """A decision. `patched` is the body to hand back where that is not the one that was pushed; `path` replaces the
    client's where it is not "".
    """

    decision: Decision
    requested_model: str
    patched: bytes | None = None
    path: str = ""
    usage: StreamUsage = StreamUsage.SETTLED
    way_back: WayBack | None = None
    """Where the body was translated."""
    streams: bool = False
    """Whether the body asks for a stream."""


class Pending:
    """A body on its way to a decision, which may have to wait.

    What cannot be translated is found out by trying: an API that it cannot be translated to is not chosen again.
    """

    __slots__ = ("admission", "arguments", "body", "open_to", "parsed", "refusal", "router", "waiting", "yields")

    def __init__(
        self, router: Router, admission: Admission | None, arguments: PickArguments, body: bytes, parsed: Parsed
    ) -> None:
        self.router, self.admission = router, admission
        """Without admission it is decided on at once."""
        self.arguments, self.body, self.parsed = arguments, body, parsed
        self.open_to = NO_APIS
        self.refusal: BadBody | None = None
        self.yields = False
        """Nobody is left who could serve the whole of it: it goes without tools that only other providers run."""
        self.waiting: Waiting | None = None

    def proceed(self, now: Seconds) -> "Chosen | Pending":
        """Decide, or wait: then `waiting` is what admission holds."""
        parsed, arguments, failed = self.parsed, self.arguments, self.arguments.failed
        request = Request(  # by place: names cost as much again
            parsed.model,
            parsed.api,
            parsed.prompt,
            parsed.prompt_bytes,
            parsed.output_tokens,
            parsed.streaming,
            parsed.needs,
            arguments.qos,
            arguments.tenant,
            arguments.pool,
            parsed.session,
            parsed.salt,
            _places(failed) if failed else NOWHERE,
            arguments.attempts_left,
            self.open_to,
        )
        admission = self.admission
        admitted = self.router.decide(request, now) if admission is None else admission.admit(request, now)
        if isinstance(admitted, Waiting):
            self.waiting = admitted
            return self
        return self.conclude(admitted, now)

    def _may_yield(self) -> bool:
        return self.arguments.loss is not Loss.STRICT and may_have_hosted(self.body)

    def conclude(self, decision: Decision, now: Seconds) -> "Chosen | Pending":
        """Make the body what the destination takes. Where it cannot be, another one is looked for."""
        router, parsed, choice = self.router, self.parsed, decision.choice
        if choice is None:
            told = _refused(router, decision, self.refusal)
            if told is decision or self.yields or not self._may_yield():
                return Chosen(told, parsed.model)
            self.yields, self.open_to = True, reaches(parsed.api, parsed.needs)
            return self.proceed(now)
        try:
            rewritten = rewrite(self.body, parsed, choice, self.arguments, yields=self.yields)
        except BadBody as error:
            router.abort(decision.reservation, AbortReason.NOT_DISPATCHED, now)
            if not isinstance(error, Untranslatable) or not self.open_to:
                return Chosen(Decision(Outcome.BAD_REQUEST, str(error)), parsed.model)
            self.refusal, self.open_to = error, self.open_to - _of_shape(choice, parsed.api)
            return self.proceed(now)
        except BaseException:
            router.abort(decision.reservation, AbortReason.NOT_DISPATCHED, now)
            raise
        made, path, back = rewritten.body, rewritten.path, rewritten.way_back
        return Chosen(decision, parsed.model, made, path, parsed.usage, back, parsed.streaming)


def choose(router: Router, arguments: PickArguments, body: bytes, now: Seconds) -> Chosen:
    """Read the body, decide at once, and make it what the destination takes. A choice is in flight from here on."""
    chosen = _choose(router, None, arguments, body, now)
    assert not isinstance(chosen, Pending), "who decides at once holds nothing"
    return chosen


def choose_or_wait(admission: Admission, arguments: PickArguments, body: bytes, now: Seconds) -> Chosen | Pending:
    """The same, but late where nobody can start it soon."""
    return _choose(admission.router, admission, arguments, body, now)


def _choose(
    router: Router, admission: Admission | None, arguments: PickArguments, body: bytes, now: Seconds
) -> Chosen | Pending:
    try:
        parsed = parse(body, arguments.request_path)
    except BadBody as error:
        return Chosen(Decision(Outcome.BAD_REQUEST, str(error)), _readable_model(body))
    if router.keeps_prefixes_apart(arguments.tenant):
        parsed = msgspec.structs.replace(parsed, salt=_salt_of(arguments.tenant, parsed.salt), has_own_salt=False)
    pending = Pending(router, admission, arguments, body, parsed)
    if arguments.translates:
        pending.open_to = reaches(parsed.api, parsed.needs)
    return pending.proceed(now)


def _salt_of(tenant: str, salt: str) -> str:
    """What sets a tenant's prompts apart: no other tenant can ask for it, whatever salt it gives."""
    return blake2b(f"{tenant}\0{salt}".encode("utf-8", "surrogatepass"), digest_size=SALT_BYTES).hexdigest()


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
    decision, requests, tokens = chosen.decision, None, None
    if (left := decision.left) is not None:
        requests, tokens = left
    return PickResult(
        decision.outcome,
        decision.reason[:REASON_MAX_CHARS],
        chosen.requested_model[:name_max_chars],
        _target(decision.choice, chosen.path),
        NO_TICKET if ticket is None else ticket.response_id,
        0 if ticket is None else ticket.bytes_left,
        decision.retry_after,
        None if requests is None else _allowance(requests),
        None if tokens is None else _allowance(tokens),
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
    if choice is None:
        return None
    if isinstance(choice, EndpointChoice):
        return LocalTarget(choice.address)
    return ProviderTarget(choice.backend, path)


def _places(failed: frozenset[LocalTarget | ProviderTarget]) -> frozenset[Address | ObjectRef]:
    return frozenset(one.address if isinstance(one, LocalTarget) else one.backend for one in failed)

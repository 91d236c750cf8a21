"""Deliberate faults of a Picker server, each with the one case of the suite that has to find it."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from types import MappingProxyType
from typing import TypeAlias

from google.protobuf.message import DecodeError
from msgspec import structs
from pytest import MonkeyPatch  # noqa: PT013 - a type only

from kinference.core.pick import Router
from kinference.errors import InvalidArgument, KinferenceError, UnknownId
from kinference.ids import ObjectRef, ResponseId, Seconds, StreamId
from kinference.picker import bodies, convert, tickets
from kinference.picker.account import Account
from kinference.picker.bodies import Bodies, Body
from kinference.picker.choosing import Chosen
from kinference.picker.desk import Desk
from kinference.picker.limits import PickerLimits
from kinference.picker.replies import PickerReplies
from kinference.picker.reports import Reports
from kinference.picker.service import PickerMethods
from kinference.picker.tickets import State, Ticket, Tickets
from kinference.ports import FinalTokenReport, FirstTokenReport, PickArguments, PickResult
from kinference.vocabulary import AbortReason, Outcome, QosClass, Role
from kinference.wire import access, grpcio_server
from kinference.wire.access import Access, Caller, Fields, Token, Unauthenticated
from kinference.wire.grpc_health import Health
from kinference.wire.pieces import Pieces
from kinference.wire.proto import picker_pb2 as pb
from kinference.wire.rpc import Call, Left, RpcError, Status
from tests.conformance.serving import GENEROUS, ROOMY, Setup

Apply: TypeAlias = Callable[[MonkeyPatch], None]
Limits: TypeAlias = Mapping[str, object]

SMALL_CHUNKS = replace(ROOMY, limits=PickerLimits(chunk_max_bytes=1000))


def nothing(_patch: MonkeyPatch) -> None:
    """The fault is in the limits alone."""


@dataclass(frozen=True)
class Mutant:
    """`limits` are those that the server really keeps; the suite is told those of the setup."""

    name: str
    caught_by: str
    apply: Apply = nothing
    limits: Limits = field(default_factory=lambda: MappingProxyType({}))
    setup: Setup | None = None
    carrier: str = "own"


def draws(module: object, numbers: Callable[[], int]) -> Apply:
    return lambda patch: patch.setattr(module, "draw_id", lambda *_: numbers())


def status(kind: type[KinferenceError], code: Status) -> Apply:
    return lambda patch: patch.setattr(convert, "STATUS", {**convert.STATUS, kind: code})


def ignores(owner: type, method: str) -> Apply:
    return lambda patch: patch.setattr(owner, method, lambda *_, **__: None)


# --- pushing --------------------------------------------------------------------------------------


def forgets_the_declared_length(patch: MonkeyPatch) -> None:
    patch.setattr(convert, "declared_length", lambda _: None)


def checks_the_declared_length_only_at_the_end(patch: MonkeyPatch) -> None:
    right = Bodies._check

    def check(self: Bodies, body: Body, length: int) -> None:
        declared, body.declared = body.declared, None
        right(self, body, length)
        body.declared = declared

    patch.setattr(Bodies, "_check", check)


def waits_for_the_end_of_a_hopeless_push(patch: MonkeyPatch) -> None:
    right = Bodies.open
    patch.setattr(Bodies, "open", lambda self, declared: right(self, None if (declared or 0) > 10**6 else declared))


def accepts_fewer_bytes_than_declared(patch: MonkeyPatch) -> None:
    right = Bodies.finish

    def finish(self: Bodies, stream_id: StreamId, now: Seconds) -> int:
        self._live[stream_id].declared = None
        return right(self, stream_id, now)

    patch.setattr(Bodies, "finish", finish)


def reads_any_number_as_a_length(patch: MonkeyPatch) -> None:
    patch.setattr(convert, "_length", lambda value: int(float(value)))


def takes_the_first_of_two_lengths(patch: MonkeyPatch) -> None:
    def declared(metadata: convert.Metadata) -> int | None:
        return next((int(value) for key, value in metadata if key == convert.DECLARED_LENGTH), None)

    patch.setattr(convert, "declared_length", declared)


def refuses_an_empty_body(patch: MonkeyPatch) -> None:
    right = Bodies.finish

    def finish(self: Bodies, stream_id: StreamId, now: Seconds) -> int:
        size = right(self, stream_id, now)
        if not size:
            raise InvalidArgument("an empty body")
        return size

    patch.setattr(Bodies, "finish", finish)


def takes_the_first_chunk_for_the_body(patch: MonkeyPatch) -> None:
    async def push_body(self: PickerMethods, call: Call) -> None:
        stream_id = self._desk.open(None)
        self._desk.append(stream_id, pb.BodyChunk.FromString(await call.receive() or b"").chunk)
        size = self._desk.finish(stream_id).total_bytes
        await call.send(pb.PushBodyResponse(stream_id=stream_id, total_bytes=size).SerializeToString())
        self._desk.commit(stream_id)

    patch.setattr(PickerMethods, "push_body", push_body)


def reads_garbage_as_an_empty_message(patch: MonkeyPatch) -> None:
    def decode(kind: type[pb.BodyChunk], message: bytes | None) -> pb.BodyChunk:
        try:
            return kind.FromString(message or b"")
        except DecodeError:
            return kind()

    patch.setattr(convert, "decode", decode)


def takes_one_push_at_a_time(patch: MonkeyPatch) -> None:
    right, one = PickerMethods.push_body, asyncio.Lock()

    async def push_body(self: PickerMethods, call: Call) -> None:
        async with one:
            await right(self, call)

    patch.setattr(PickerMethods, "push_body", push_body)


def picks_when_no_push_is_under_way(patch: MonkeyPatch) -> None:
    right = PickerReplies.pick

    async def late(self: PickerReplies, message: bytes | None, call: Call) -> None:
        while any(body.state is bodies.State.OPEN for body in self._desk._bodies._live.values()):  # noqa: ASYNC110 - a fault
            await asyncio.sleep(0.01)
        answer = right(self, message, call)
        await (call.send(answer) if isinstance(answer, bytes) else answer)

    def pick(self: PickerReplies, message: bytes | None, call: Call) -> Left:
        return late(self, message, call)

    patch.setattr(PickerReplies, "pick", pick)


def loses_the_tail(patch: MonkeyPatch) -> None:
    patch.setattr(Pieces, "pieces", lambda self: tuple(self._pieces))


def counts_chunks_for_bytes(patch: MonkeyPatch) -> None:
    right = Bodies.finish
    patch.setattr(Bodies, "finish", lambda self, stream_id, now: min(1, right(self, stream_id, now)))


# --- picking --------------------------------------------------------------------------------------


def changes_results(change: Callable[[PickResult], PickResult]) -> Apply:
    right = Desk._picked
    return lambda patch: patch.setattr(Desk, "_picked", lambda *args, **kwargs: change(right(*args, **kwargs)))


def changes_arguments(change: Callable[[PickArguments], PickArguments]) -> Apply:
    right = convert.pick_arguments
    return lambda patch: patch.setattr(
        convert, "pick_arguments", lambda message, metadata, most: change(right(message, metadata, most))
    )


def on_refusal(result: PickResult, **changed: object) -> PickResult:
    return result if result.destination else structs.replace(result, **changed)


def on_choice(result: PickResult, **changed: object) -> PickResult:
    return structs.replace(result, **changed) if result.destination else result


def refuses_bad_requests_by_status(result: PickResult) -> PickResult:
    if result.outcome is Outcome.BAD_REQUEST:
        raise InvalidArgument(result.reason)
    return result


def takes_every_pool_for_one(patch: MonkeyPatch) -> None:
    right = convert.pick_arguments

    def pick_arguments(message: bytes | None, metadata: convert.Metadata, most: int) -> PickArguments:
        arguments, request = right(message, metadata, most), pb.PickRequest.FromString(message or b"")
        pool = request.inference_pool
        named = ObjectRef(pool.namespace, pool.name) if request.HasField("inference_pool") else None
        return structs.replace(arguments, pool=named)

    patch.setattr(convert, "pick_arguments", pick_arguments)


def knows_no_later_reason(patch: MonkeyPatch) -> None:
    right = convert.abort_arguments

    def abort_arguments(message: bytes | None) -> tuple[ResponseId, AbortReason, str]:
        if pb.AbortRequest.FromString(message or b"").reason not in set(map(int, AbortReason)):
            raise InvalidArgument("unknown value")
        return right(message)

    patch.setattr(convert, "abort_arguments", abort_arguments)


def knows_no_later_class(patch: MonkeyPatch) -> None:
    right = convert.pick_arguments

    def pick_arguments(message: bytes | None, metadata: convert.Metadata, most: int) -> PickArguments:
        if pb.PickRequest.FromString(message or b"").qos_class not in set(map(int, QosClass)):
            raise InvalidArgument("unknown value")
        return right(message, metadata, most)

    patch.setattr(convert, "pick_arguments", pick_arguments)


def tells_the_body(patch: MonkeyPatch) -> None:
    right = Desk._picked

    def picked(self: Desk, chosen: Chosen, whole: bytes, arguments: PickArguments, *, remote: bool) -> PickResult:
        body = b"".join(self._bodies.peek(arguments.stream_id).pieces())
        return on_refusal(
            right(self, chosen, whole, arguments, remote=remote), reason=body.decode(errors="replace")[:500]
        )

    patch.setattr(Desk, "_picked", picked)


def keeps_what_it_refused(patch: MonkeyPatch) -> None:
    right = Desk._picked

    def picked(self: Desk, chosen: Chosen, whole: bytes, arguments: PickArguments, *, remote: bool) -> PickResult:
        before = self._account.held
        result = right(self, chosen, whole, arguments, remote=remote)
        self._account.held = self._account.held if result.destination else before
        return result

    patch.setattr(Desk, "_picked", picked)


def consumes_nothing(patch: MonkeyPatch) -> None:
    patch.setattr(Bodies, "consume", lambda self, stream_id, _now: self.peek(stream_id))
    patch.setattr(Account, "release", lambda *_: None)


# --- pulling, reports, time -----------------------------------------------------------------------


def serves_a_second_pull(patch: MonkeyPatch) -> None:
    right = Tickets.unpulled

    def unpulled(self: Tickets, response_id: ResponseId) -> Ticket:
        ticket = self.find(response_id)
        if ticket is None or ticket.state is State.UNPULLED:
            return right(self, response_id)
        return Ticket(response_id, ticket.flow, ())

    patch.setattr(Tickets, "unpulled", unpulled)


def sends_a_body_in_one_chunk(patch: MonkeyPatch) -> None:
    right = Pieces.pieces
    patch.setattr(Pieces, "pieces", lambda self: (b"".join(right(self)),))


def sends_pieces_in_the_wrong_order(patch: MonkeyPatch) -> None:
    right = Tickets.open

    def open_(self: Tickets, pieces: Sequence[bytes], *rest: object) -> Ticket:
        return right(self, [piece[1:] + piece[:1] for piece in pieces], *rest)  # type: ignore[arg-type] # passed on

    patch.setattr(Tickets, "open", open_)


def cuts_the_pull_at_the_final_report(patch: MonkeyPatch) -> None:
    right = Reports.final_token

    def final_token(self: Reports, report: FinalTokenReport) -> bool:
        ticket = self._tickets.find(report.response_id)
        acknowledged = right(self, report)
        if ticket is not None:
            self._tickets.cut_pull(ticket, UnknownId("over"), self._clock.now())
        return acknowledged

    patch.setattr(Reports, "final_token", final_token)


def raises_for_an_abort_of_nothing(patch: MonkeyPatch) -> None:
    right = Reports.abort

    def abort(self: Reports, response_id: ResponseId, reason: AbortReason, detail: str = "") -> bool:
        if not right(self, response_id, reason, detail):
            raise UnknownId("nothing to abort")
        return True

    patch.setattr(Reports, "abort", abort)


def acknowledges_one_first_report(patch: MonkeyPatch) -> None:
    right = Reports.first_token

    def first_token(self: Reports, report: FirstTokenReport) -> bool:
        ticket = self._tickets.find(report.response_id)
        return right(self, report) and ticket is not None and ticket.flow.upstream_status == report.upstream_status

    patch.setattr(Reports, "first_token", first_token)


def answers(method: str, change: Callable[[bool], bool]) -> Apply:
    right = getattr(Reports, method)
    return lambda patch: patch.setattr(Reports, method, lambda self, *args: change(right(self, *args)))


def releases_no_aborted_bytes(patch: MonkeyPatch) -> None:
    right = Reports.abort

    def abort(self: Reports, *args: object) -> bool:
        account = self._tickets._account
        before = account.held
        released = right(self, *args)  # type: ignore[arg-type] # passed on
        account.held = before
        return released

    patch.setattr(Reports, "abort", abort)


def lets_in_whoever_begins_like_it(patch: MonkeyPatch) -> None:
    right, read = Access.replace, access._bearer

    def replace_(self: Access, tokens: Iterable[Token] = (), *_: object) -> None:
        right(self, [Token(each.name, each.role, each.secret[:10]) for each in tokens])

    patch.setattr(Access, "replace", replace_)
    patch.setattr(access, "_bearer", lambda fields: read(fields)[:10])


def asks_only_who_shows_something(patch: MonkeyPatch) -> None:
    right = Access.check

    def check(self: Access, fields: Fields, *roles: Role, names: Iterable[str] = ()) -> Caller:
        return right(self, fields, *roles, names=names) if access._bearer(fields) else Caller()

    patch.setattr(Access, "check", check)


def refuses_everybody(patch: MonkeyPatch) -> None:
    patch.setattr(Access, "_by_token", lambda *_: None)


def guards_health_too(patch: MonkeyPatch) -> None:
    async def check(_self: Health, _call: Call) -> None:
        raise RpcError(Status.UNAUTHENTICATED, "show a token")

    patch.setattr(Health, "_check", check)


def compresses_for_everybody(patch: MonkeyPatch) -> None:
    right = grpcio_server._options
    gzip = ("grpc.default_compression_algorithm", 2)
    patch.setattr(grpcio_server, "_options", lambda limits: [*right(limits), gzip])


def always(_: bool) -> bool:
    return True


def inverted(value: bool) -> bool:
    return not value


MUTANTS = (
    Mutant("the body budget is one byte more", "budget.one-byte-more-than-the-largest-body-exhausts", limits={"body_max_bytes": 32 * 2**20 + 1}),
    Mutant("the body budget is one byte less", "budget.the-largest-body-passes", limits={"body_max_bytes": 32 * 2**20 - 1}),
    Mutant("the server's budget is one byte more", "budget.the-servers-budget-holds-to-the-byte", limits={"buffer_max_bytes": 20 * 2**20 + 1}),
    Mutant("the server's budget is one byte less", "budget.the-servers-budget-holds-to-the-byte", limits={"buffer_max_bytes": 20 * 2**20 - 1}),
    Mutant("the chunk limit is one byte more", "push.one-byte-more-than-the-largest-chunk-exhausts", limits={"chunk_max_bytes": 1001}, setup=SMALL_CHUNKS),
    Mutant("the chunk limit is one byte less", "push.the-largest-chunk-passes", limits={"chunk_max_bytes": 2**20 - 1}),
    Mutant("an idle push is never ended", "push.an-idle-push-is-ended-by-the-server-in-time", limits={"push_idle_timeout": 1000.0}),
    Mutant("an idle push is ended early", "push.an-idle-push-is-ended-by-the-server-in-time", limits={"push_idle_timeout": 0.1}),
    Mutant("a steady push has one deadline", "push.a-slow-but-steady-push-is-never-cut", limits={"push_idle_timeout": 0.001}),
    Mutant("a pause ends a push", "push.a-pause-in-a-push-is-no-end", limits={"push_idle_timeout": 0.001}),
    Mutant("bodies live for ever", "pick.a-body-that-nobody-picked-in-time-is-not-found", limits={"body_ttl": 1000.0}),
    Mutant("bodies die early", "pick.a-body-waits-for-its-pick-until-its-time-is-over", limits={"body_ttl": 0.001}),
    Mutant("the TTL never fires", "pull.a-body-that-nobody-pulled-in-time-is-gone", ignores(Desk, "expire")),
    Mutant("the TTL forgets tickets", "report.a-request-that-nobody-pulled-or-reported-is-closed-in-time", limits={"body_ttl": 1000.0}),
    Mutant("the TTL of bodies ends slow pulls", "pull.a-slow-pull-gets-every-byte-however-long-it-takes", limits={"stalled_pull_ttl": 0.001}),
    Mutant("a dispatched request dies with its body's TTL", "report.a-request-that-was-dispatched-outlives-the-time-of-bodies", lambda patch: patch.setattr(Tickets, "dispatch", lambda self, ticket, now: self._waiting.start(ticket.response_id, now))),
    Mutant("a stalled pull blocks every push", "budget.a-pull-that-stopped-for-good-gives-way-to-a-new-push", limits={"stall_grace": 1000.0}),
    Mutant("an idle push is CANCELLED", "push.an-idle-push-exceeds-its-deadline", lambda patch: patch.setattr(convert, "STATUS", {kind: Status.CANCELLED if code is Status.DEADLINE_EXCEEDED else code for kind, code in convert.STATUS.items()})),
    Mutant("a body's id is 0", "push.a-half-close-completes-the-body", draws(bodies, lambda: 0)),
    Mutant("a request's id is 0", "pick.a-choice-names-its-destination-and-an-id", draws(tickets, lambda: 0)),
    Mutant("bodies are numbered in a row", "push.ids-are-not-to-be-guessed", draws(bodies, count(2**60).__next__)),
    Mutant("requests are numbered in a row", "pick.response-ids-are-not-to-be-guessed", draws(tickets, count(1).__next__)),
    Mutant("the declared length is ignored", "length.fewer-bytes-than-declared-are-invalid", forgets_the_declared_length),
    Mutant("more than declared is accepted", "length.more-bytes-than-declared-are-invalid", forgets_the_declared_length),
    Mutant("fewer than declared is accepted", "length.fewer-bytes-than-declared-are-invalid", accepts_fewer_bytes_than_declared),
    Mutant("half a message is a whole one", "push.a-message-cut-short-by-the-half-close-is-never-taken-for-whole", accepts_fewer_bytes_than_declared, carrier="grpcio"),
    Mutant("more than declared is read to its end", "length.too-many-bytes-end-the-push-at-once", checks_the_declared_length_only_at_the_end),
    Mutant("a hopeless push is read to its end", "length.a-length-over-the-budget-exhausts-at-once", waits_for_the_end_of_a_hopeless_push),
    Mutant("5.0 is a length", "length.what-is-no-length-is-invalid", reads_any_number_as_a_length),
    Mutant("the first of two lengths counts", "length.a-length-declared-twice-must-agree", takes_the_first_of_two_lengths),
    Mutant("an empty body is refused", "push.a-push-without-bytes-is-complete", refuses_an_empty_body),
    Mutant("a partial body has an id", "push.a-push-that-has-not-ended-has-no-answer", takes_the_first_chunk_for_the_body),
    Mutant("garbage is an empty chunk", "push.what-is-no-chunk-is-invalid", reads_garbage_as_an_empty_message),
    Mutant("garbage is an empty Pick", "report.what-is-no-report-is-invalid", reads_garbage_as_an_empty_message),
    Mutant("nobody is asked for a token", "access.a-call-without-the-token-is-unauthenticated", ignores(Access, "check")),
    Mutant("a part of a token will do", "access.a-call-without-the-token-is-unauthenticated", lets_in_whoever_begins_like_it),
    Mutant("whoever shows no token is let in", "access.a-call-without-the-token-is-unauthenticated", asks_only_who_shows_something),
    Mutant("no token will do", "access.a-call-with-the-token-is-served", refuses_everybody),
    Mutant("a missing token is PERMISSION_DENIED", "access.a-call-without-the-token-is-unauthenticated", status(Unauthenticated, Status.PERMISSION_DENIED)),
    Mutant("health checks need a token", "access.health-is-told-without-the-token", guards_health_too),
    Mutant("a push under way blocks every pick", "flow.a-flood-of-tiny-chunks-holds-up-nothing-else", picks_when_no_push_is_under_way, carrier="grpcio"),
    Mutant("one slow push blocks all others", "flow.a-stalled-pull-and-a-slow-push-hold-up-nothing-else", takes_one_push_at_a_time, carrier="grpcio"),
    Mutant("small chunks are lost", "push.chunks-of-one-byte-are-a-body-like-any", loses_the_tail),
    Mutant("total_bytes counts chunks", "push.a-half-close-completes-the-body", counts_chunks_for_bytes),
    Mutant("a reset push stays", "budget.a-reset-push-gives-its-bytes-back", ignores(Bodies, "discard")),
    Mutant("a lost connection's pushes stay", "budget.a-lost-connection-gives-the-bytes-of-its-pushes-back", ignores(Bodies, "discard")),
    Mutant("a second Pick is NOT_FOUND", "pick.a-second-pick-fails-its-precondition", limits={"tombstones_max": 0}),
    Mutant("a second Pick is answered", "pick.of-many-picks-at-once-exactly-one-is-answered", consumes_nothing),
    Mutant("id 0 is NOT_FOUND", "pick.the-id-0-is-invalid", status(InvalidArgument, Status.NOT_FOUND)),
    Mutant("an unknown id is INVALID_ARGUMENT", "pick.an-id-that-names-no-body-is-not-found", status(UnknownId, Status.INVALID_ARGUMENT)),
    Mutant("a BAD_REQUEST is a gRPC status", "pick.what-is-no-inference-request-is-a-bad-request", changes_results(refuses_bad_requests_by_status)),
    Mutant("a refusal has an id", "pick.a-refusal-holds-nothing-and-says-why", changes_results(lambda result: on_refusal(result, response_id=ResponseId(5)))),
    Mutant("a refusal has bytes", "pick.a-refusal-holds-nothing-and-says-why", changes_results(lambda result: on_refusal(result, body_total_bytes=5))),
    Mutant("a refusal gives no reason", "pick.a-refusal-holds-nothing-and-says-why", changes_results(lambda result: on_refusal(result, reason=""))),
    Mutant("a refusal quotes the body", "pick.a-reason-tells-nothing-of-the-text", tells_the_body),
    Mutant("a refusal hides the model", "pick.the-model-is-told-whatever-the-outcome", changes_results(lambda result: on_refusal(result, requested_model=""))),
    Mutant("a rejection does not say its kind", "pick.a-tenant-that-may-not-is-rejected-by-policy", changes_results(lambda result: on_refusal(result, reason="no"))),
    Mutant("body_total_bytes is one more", "pick.the-total-is-that-of-the-body-handed-back", changes_results(lambda result: on_choice(result, body_total_bytes=result.body_total_bytes + 1))),
    Mutant("a choice has no destination", "pick.a-choice-names-its-destination-and-an-id", changes_results(lambda result: structs.replace(result, destination=None))),
    Mutant('the tenant "" is any tenant', "pick.the-empty-tenant-is-the-value-empty", changes_arguments(lambda arguments: structs.replace(arguments, tenant=arguments.tenant or "anyone"))),
    Mutant('the tenant "" is nobody', "pick.the-empty-tenant-is-the-value-empty", changes_arguments(lambda arguments: structs.replace(arguments, tenant=arguments.tenant or "nobody")), setup=GENEROUS),
    Mutant("a pool without a name is a pool", "pick.a-pool-without-a-name-is-no-pool", takes_every_pool_for_one),
    Mutant("an unknown pool is any pool", "pick.a-pool-that-is-not-served-has-no-workers", changes_arguments(lambda arguments: structs.replace(arguments, pool=None))),
    Mutant("an unknown class is refused", "pick.an-unknown-class-is-tolerated", knows_no_later_class),
    Mutant("an unknown reason is refused", "abort.the-first-abort-releases-and-no-other-does", knows_no_later_reason),
    Mutant("a refused body stays", "budget.a-refused-pick-gives-its-bytes-back-at-once", keeps_what_it_refused),
    Mutant("NO_WORKERS keeps the body", "budget.a-pick-without-workers-gives-its-bytes-back-at-once", keeps_what_it_refused),
    Mutant("pulled bytes stay", "budget.a-pull-gives-its-bytes-back", ignores(Account, "release")),
    Mutant("aborted bytes stay", "budget.an-abort-gives-the-bytes-back", releases_no_aborted_bytes),
    Mutant("a second PullBody is served", "pull.a-second-pull-is-not-found", serves_a_second_pull),
    Mutant("a second PullBody is served beside the first", "pull.a-second-pull-while-the-first-runs-is-not-found", serves_a_second_pull),
    Mutant("a broken pull is resumed", "pull.a-broken-pull-cannot-be-resumed-and-its-request-lives-on", serves_a_second_pull),
    Mutant("a body is one chunk", "pull.a-body-comes-back-whole-in-chunks-that-fit", sends_a_body_in_one_chunk),
    Mutant("a body comes back in another order", "pick.the-total-is-that-of-the-body-handed-back", sends_pieces_in_the_wrong_order),
    Mutant("a final report cuts the pull", "pull.a-final-report-does-not-cut-a-pull-short", cuts_the_pull_at_the_final_report),
    Mutant("an abort leaves the pull alone", "pull.an-abort-ends-a-pull", ignores(Tickets, "cut_pull")),
    Mutant("an abort of nothing fails", "abort.an-abort-of-an-unknown-id-is-no-failure", raises_for_an_abort_of_nothing),
    Mutant("every abort releases", "abort.of-many-aborts-at-once-exactly-one-releases", answers("abort", always)),
    Mutant("first reports are acknowledged the wrong way round", "report.a-first-report-is-acknowledged-while-the-request-lives", answers("first_token", inverted)),
    Mutant("a report of nothing is acknowledged", "report.a-report-of-an-unknown-id-is-no-failure", answers("final_token", always)),
    Mutant("a repeated first report is not acknowledged", "report.a-first-report-is-acknowledged-while-the-request-lives", acknowledges_one_first_report),
    Mutant("a final report closes nothing", "report.a-final-report-closes-the-request", lambda patch: patch.setattr(Reports, "final_token", lambda self, report: self._tickets.find(report.response_id) is not None)),
    Mutant("a backend that fails is picked again", "pick.a-backend-that-callers-cannot-use-is-not-picked-again", ignores(Router, "abort")),
    Mutant("everybody gets gzip", "flow.an-answer-is-not-compressed-for-who-takes-it-plain", compresses_for_everybody, carrier="grpcio"),
)  # fmt: skip

import pytest

from kinference.errors import KinferenceError, NoConnectionLeft, UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from kinference.gateway import errors
from kinference.gateway.access_log import Record
from kinference.gateway.attempts import Attempts, Failure, Order, Sending
from kinference.gateway.auth import Caller
from kinference.gateway.backends import Directory, Inbound
from kinference.gateway.errors import Fault, Refusal
from kinference.gateway.held_body import BodyLimits, HeldBody
from kinference.gateway.options import GatewayOptions
from kinference.gateway.verdict import ErrorAnswer
from kinference.ids import ResponseId
from kinference.ports import LocalTarget, PickResult, Placed, ProviderTarget
from kinference.shapes.scan import BadBody
from kinference.vocabulary import AbortReason, Api, Loss, Outcome, QosClass, StreamUsage
from tests.unit.gateway.fakes import ENGINE_A, ENGINE_B, JSON, PROVIDER, FakeAnswer, World

BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
STREAMING = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
MESSAGES = "/v1/messages"
ID = ResponseId(7)
NOT_FOUND = ErrorAnswer(404, JSON, b'{"error":{"message":"Not Found"}}')


class Run:
    """The attempts of one request between fakes."""

    def __init__(self, path: str = "/v1/chat/completions", api: Api = Api.OPENAI_CHAT, *, counts: bool = False) -> None:
        self.world, self.record = World(), Record("req_1", path, 100.0)
        self.body = HeldBody(BodyLimits(100_000, 30.0), self.world.picker)
        inbound = Inbound(path, "", (), "req_1", api)
        self.order = Order(Caller("acme", QosClass.BATCH), inbound, self.body, counts, Loss.SILENT)
        self.attempts = Attempts(self.world.outside, GatewayOptions(), self.record, self.order)

    def placed(
        self, destination: LocalTarget | ProviderTarget, body: bytes = BODY, usage: StreamUsage | None = None
    ) -> Placed:
        return Placed(PickResult(Outcome.OK, "", "m", destination, ID), body, usage)

    def prepared(
        self, destination: LocalTarget | ProviderTarget = ENGINE_A, body: bytes = BODY, usage: StreamUsage | None = None
    ) -> Sending:
        sending = self.attempts.prepare(self.placed(destination, body, usage), destination)
        assert isinstance(sending, Sending)
        return sending


def test_the_picker_is_asked_for_whom_and_told_where_it_was_in_vain() -> None:
    run = Run()
    first = run.attempts.arguments()
    assert (first.tenant, first.qos, first.client_request_id) == ("acme", QosClass.BATCH, "req_1")
    assert (first.failed, first.attempts_left, first.loss) == (frozenset(), 3, Loss.SILENT)
    run.prepared()
    second = run.attempts.arguments()
    assert (second.failed, second.attempts_left) == (frozenset({ENGINE_A}), 2)
    assert (run.attempts.has_failed(ENGINE_A), run.attempts.has_failed(ENGINE_B)) == (True, False)


def test_a_placed_body_is_counted_no_longer_and_its_model_known() -> None:
    run = Run()
    run.body.add(BODY)
    run.attempts.placed(run.placed(ENGINE_A))
    assert (run.world.picker.held, run.record.model) == (0, "m")
    assert run.record.picked is not None


@pytest.mark.parametrize(("model", "fault"), [("m", errors.OVERLOADED), ("gone", errors.UNKNOWN_MODEL)])
def test_a_pick_without_a_destination_is_refused_by_what_is_known_of_the_model(model: str, fault: Fault) -> None:
    assert Run().attempts.refused(PickResult(Outcome.NO_WORKERS, "none", model)).fault is fault


def test_what_goes_out_is_the_body_to_where_it_was_placed() -> None:
    run = Run()
    sending = run.prepared()
    assert (sending.request.origin, sending.request.target) == ("http://10.0.0.1:8000", "/v1/chat/completions")
    assert (sending.request.body, sending.hide_usage, sending.sent_at) == ((BODY,), False, 100.0)
    assert (sending.ticket.is_dispatched, run.record.attempts, run.record.endpoint) == (True, 1, "10.0.0.1:8000")


@pytest.mark.parametrize("usage", [None, StreamUsage.NOT_ASKED, StreamUsage.SETTLED])
def test_the_usage_of_a_stream_is_asked_for_where_the_client_did_not(usage: StreamUsage | None) -> None:
    sending = Run().prepared(body=STREAMING, usage=usage)
    asks = usage is not StreamUsage.SETTLED
    assert (b'"include_usage":true' in sending.request.body[0], sending.hide_usage) == (asks, asks)


def test_a_destination_that_nobody_knows_is_not_asked() -> None:
    run = Run()
    run.world.directory = Directory(lambda _address: None, lambda _ref: None, tuple)
    for destination, reason in ((ENGINE_A, AbortReason.NOT_DISPATCHED), (PROVIDER, AbortReason.BACKEND_UNRESOLVED)):
        attempts = Attempts(run.world.outside, GatewayOptions(), run.record, run.order)
        failure = attempts.prepare(run.placed(destination), destination)
        assert isinstance(failure, Failure)
        assert run.world.picker.aborted[-1] == (ID, reason)


def test_an_engine_that_lacks_the_clients_api_is_asked_in_chat_and_known_by_it_afterwards() -> None:
    run = Run(MESSAGES, Api.ANTHROPIC_MESSAGES)
    body = b'{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}'
    sending = run.prepared(ENGINE_A, body)
    assert run.attempts.lacks_path(NOT_FOUND, sending)
    chat = run.attempts.prepare_in_chat(run.placed(ENGINE_A, body), ENGINE_A)
    assert isinstance(chat, Sending)
    assert (chat.request.target, chat.way_back is None) == ("/v1/chat/completions", False)
    assert run.attempts.prepare(run.placed(ENGINE_A, body), ENGINE_A) is None


def test_such_an_engine_goes_on_from_what_begins_the_answer() -> None:
    run = Run(MESSAGES, Api.ANTHROPIC_MESSAGES)
    begun = b'{"role":"user","content":"hi"},{"role":"assistant","content":"So"}'
    body = b'{"model":"m","max_tokens":5,"messages":[%b]}' % begun
    run.prepared(ENGINE_B, body)
    chat = run.attempts.prepare_in_chat(run.placed(ENGINE_B, body), ENGINE_B)
    assert isinstance(chat, Sending)
    assert b'"continue_final_message":true' in b"".join(chat.request.body)


def test_only_what_engines_may_lack_is_missed() -> None:
    run = Run()
    assert not run.attempts.lacks_path(NOT_FOUND, run.prepared())


def test_an_answer_is_delivered_with_what_was_sent_for_it_and_its_wait_is_not_ours() -> None:
    run = Run()
    sending, answer = run.prepared(body=STREAMING), FakeAnswer()
    run.world.clock.time += 0.5
    delivery = run.attempts.answered(answer, sending)
    assert (delivery.answer, delivery.ticket, delivery.sent_at) == (answer, sending.ticket, 100.0)
    assert (delivery.body_bytes, delivery.hide_usage) == (len(STREAMING), True)
    assert run.record.upstream_s == 0.5


@pytest.mark.parametrize(
    ("destination", "error", "reason", "is_final"),
    [
        (ENGINE_A, ErrorAnswer(503, JSON, b"{}"), AbortReason.UNSPECIFIED, False),
        (ENGINE_A, ErrorAnswer(400, JSON, b'{"error":"no"}'), AbortReason.UNSPECIFIED, True),
        (PROVIDER, ErrorAnswer(401, JSON, b"{}"), AbortReason.BACKEND_UNAUTHORIZED, False),
    ],
)
def test_an_error_is_blamed_on_whoever_can_mend_it(
    destination: LocalTarget | ProviderTarget, error: ErrorAnswer, reason: AbortReason, is_final: bool
) -> None:
    run = Run()
    failure = run.attempts.answered_with_error(error, run.prepared(destination))
    assert (failure.is_final, run.world.picker.aborted) == (is_final, [(ID, reason)])
    assert [report.upstream_status for report in run.world.picker.first] == [error.status]


@pytest.mark.parametrize(
    ("error", "statuses", "reason", "is_final"),
    [
        (NoConnectionLeft("none"), [], AbortReason.NOT_DISPATCHED, True),
        (UpstreamTimeout("silent"), [504], AbortReason.UNSPECIFIED, True),
        (UpstreamUnreachable("down"), [502], AbortReason.NOT_DISPATCHED, False),
        (UpstreamCut("cut"), [502], AbortReason.UNSPECIFIED, False),
    ],
)
def test_no_answer_is_reported_by_how_far_it_came(
    error: KinferenceError, statuses: list[int], reason: AbortReason, is_final: bool
) -> None:
    run = Run()
    failure = run.attempts.no_answer(error, run.prepared())
    assert (failure.is_final, run.world.picker.aborted) == (is_final, [(ID, reason)])
    assert [report.upstream_status for report in run.world.picker.first] == statuses


def test_a_body_that_cannot_be_told_to_its_destination_is_the_clients_fault() -> None:
    run = Run()
    run.prepared()
    failure = run.attempts.untranslatable(BadBody("no such role"))
    assert isinstance(failure.told, Refusal)
    assert (failure.told.fault, failure.told.message, failure.is_final) == (errors.BAD_REQUEST, "no such role", True)

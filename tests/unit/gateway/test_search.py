import json
from dataclasses import replace

import pytest

from kinference.errors import (
    BudgetExceeded,
    ClientGone,
    Draining,
    KinferenceError,
    NoConnectionLeft,
    RetryLater,
    UpstreamCut,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from kinference.gateway.access_log import Record
from kinference.gateway.attempts import Delivery, Order
from kinference.gateway.auth import Caller
from kinference.gateway.backends import BackendRoute, Inbound
from kinference.gateway.dispatch import Dispatch
from kinference.gateway.errors import Refusal
from kinference.gateway.held_body import BodyLimits, HeldBody
from kinference.gateway.options import GatewayOptions
from kinference.gateway.search import Estimated, Search
from kinference.gateway.verdict import ErrorAnswer
from kinference.ids import ObjectRef, ResponseId
from kinference.ports import PickResult, ProviderTarget
from kinference.shapes.counting import is_count
from kinference.shapes.translate import Way, translated
from kinference.vocabulary import AbortReason, Api, Outcome, QosClass, StreamUsage
from kinference.wire.sigv4 import AwsKeys, Signable, signature
from tests.unit.gateway.fakes import (
    CUT,
    ENGINE_A,
    ENGINE_B,
    EVENTS,
    JSON,
    PROVIDER,
    PROVIDER_KEY,
    FakeAnswer,
    FakeExchange,
    FakePicker,
    FakeUpstream,
    World,
)

CHAT = Api.OPENAI_CHAT
BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
STREAMING = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
DOWN = UpstreamUnreachable("http://10.0.0.1:8000 refused the connection")
NONE_LEFT = PickResult(Outcome.NO_WORKERS, "none ready", "m")


class Run:
    """One dispatch between fakes."""

    def __init__(
        self,
        world: World,
        body: bytes = BODY,
        *,
        api: Api = Api.OPENAI_CHAT,
        bytes_max: int = 100_000,
        path: str = "/v1/chat/completions",
    ) -> None:
        self.world = world
        self.record = Record("req_1", "/v1/chat/completions", 100.0)
        self.body = body
        held = HeldBody(BodyLimits(bytes_max, 30.0), world.picker)
        inbound = Inbound(path, "", (), "req_1", api)
        order = Order(Caller("acme", QosClass.BATCH), inbound, held, is_count(path))
        self.order = order
        self.dispatch = Dispatch(world.outside, GatewayOptions(), self.record, order)

    async def outcome(self) -> Delivery | Estimated | Refusal | ErrorAnswer:
        return await Search(self.dispatch).run(FakeExchange(self.order.inbound.path, (self.body,)))

    async def delivery(self) -> Delivery:
        outcome = await self.outcome()
        assert isinstance(outcome, Delivery)
        return outcome

    async def refusal(self) -> Refusal:
        outcome = await self.outcome()
        assert isinstance(outcome, Refusal)
        return outcome

    async def error(self) -> ErrorAnswer:
        outcome = await self.outcome()
        assert isinstance(outcome, ErrorAnswer)
        return outcome


async def test_a_request_is_placed_and_sent() -> None:
    world = World(upstream=FakeUpstream(FakeAnswer()))
    run = Run(world)
    delivery = await run.delivery()
    assert [chunk async for chunk in delivery.answer.chunks()] == [b"{}"]
    (pick,) = world.picker.picks
    assert (pick.client_request_id, pick.tenant, pick.qos, pick.request_path) == (
        "req_1",
        "acme",
        QosClass.BATCH,
        "/v1/chat/completions",
    )
    assert pick.translates
    (request,) = world.upstream.requests
    assert (request.method, request.origin, request.target) == ("POST", "http://10.0.0.1:8000", "/v1/chat/completions")
    assert world.upstream.body == BODY
    assert (run.record.model, run.record.endpoint, run.record.attempts) == ("m", "10.0.0.1:8000", 1)


def streamed(*chunks: bytes) -> FakeAnswer:
    return FakeAnswer(200, EVENTS, chunks)


@pytest.mark.parametrize(
    "failure",
    [
        DOWN,
        CUT,
        FakeAnswer(429),
        FakeAnswer(500),
        FakeAnswer(503),
        streamed(b'data: {"error":{"message":"boom"}}\n\n'),
        streamed(b": comes soon\n\n", b'data: {"error":{"mess', b'age":"boom","code":503}}\n\n', b"data: [DONE]\n\n"),
        streamed(),
    ],
)
async def test_h2_another_destination_is_tried_while_the_client_has_seen_nothing(
    failure: FakeAnswer | KinferenceError,
) -> None:
    world = World(FakePicker(ENGINE_A, ENGINE_B), FakeUpstream(failure, FakeAnswer()))
    run = Run(world)
    delivery = await run.delivery()
    assert delivery.ticket.response_id == ResponseId(2)
    assert world.picker.pushed == [BODY, BODY]
    assert [request.origin for request in world.upstream.requests] == ["http://10.0.0.1:8000", "http://10.0.0.2:8000"]
    assert [report.response_id for report in world.picker.first] == [1]
    assert [response_id for response_id, _ in world.picker.aborted] == [1]
    assert run.record.attempts == 2


@pytest.mark.parametrize(
    ("failure", "status", "reason"),
    [
        (DOWN, 502, AbortReason.NOT_DISPATCHED),
        (UpstreamCut("no HTTP"), 502, AbortReason.UNSPECIFIED),
        (UpstreamTimeout("silent"), 504, AbortReason.UNSPECIFIED),
        (FakeAnswer(429), 429, AbortReason.UNSPECIFIED),
        (FakeAnswer(400), 400, AbortReason.UNSPECIFIED),
    ],
)
async def test_the_picker_learns_how_a_destination_failed(
    failure: FakeAnswer | KinferenceError, status: int, reason: AbortReason
) -> None:
    world = World(FakePicker(ENGINE_A, NONE_LEFT), FakeUpstream(failure))
    assert not isinstance(await Run(world).outcome(), Delivery)
    assert [report.upstream_status for report in world.picker.first] == [status]
    assert world.picker.aborted == [(ResponseId(1), reason)]


async def test_a_connection_that_we_cannot_open_is_no_destinations_fault() -> None:
    world = World(FakePicker(ENGINE_A, ENGINE_B), FakeUpstream(NoConnectionLeft("too many open files")))
    refusal = await Run(world).refusal()
    assert (refusal.fault.status, refusal.fault.retriable) == (503, True)
    assert world.picker.first == []
    assert world.picker.aborted == [(ResponseId(1), AbortReason.NOT_DISPATCHED)]
    assert len(world.upstream.requests) == 1


async def test_a_failed_answers_connection_is_given_back() -> None:
    failed = FakeAnswer(503)
    await Run(World(FakePicker(ENGINE_A, ENGINE_B), FakeUpstream(failed, FakeAnswer()))).delivery()
    assert failed.is_closed


async def test_a_destination_that_just_failed_is_not_sent_to_again() -> None:
    world = World(FakePicker(ENGINE_A), FakeUpstream(DOWN))
    assert (await Run(world).refusal()).fault.status == 502
    assert len(world.upstream.requests) == 1
    assert world.picker.aborted[1:] == [(ResponseId(n), AbortReason.NOT_DISPATCHED) for n in (2, 3)]


async def test_the_picker_is_told_where_the_request_has_failed() -> None:
    world = World(FakePicker(ENGINE_A, ENGINE_B), FakeUpstream(DOWN, FakeAnswer()))
    await Run(world).delivery()
    assert [arguments.attempts_left for arguments in world.picker.picks] == [3, 2, 1][: len(world.picker.picks)]
    assert [arguments.failed for arguments in world.picker.picks] == [
        frozenset(),
        frozenset({ENGINE_A}),
    ]


async def test_a_pick_that_falls_on_the_failed_one_again_is_repeated() -> None:
    world = World(FakePicker(ENGINE_A, ENGINE_A, ENGINE_B), FakeUpstream(DOWN, FakeAnswer()))
    assert (await Run(world).delivery()).ticket.response_id == ResponseId(3)


async def test_no_more_than_three_destinations_are_tried() -> None:
    world = World(FakePicker(ENGINE_A, ENGINE_B, PROVIDER, ENGINE_A), FakeUpstream(DOWN, DOWN, DOWN))
    assert (await Run(world).refusal()).fault.status == 502
    assert len(world.upstream.requests) == 3


async def test_h1_without_an_alternative_the_429_reaches_the_client_with_its_retry_after() -> None:
    limited = FakeAnswer(429, (*JSON, (b"retry-after", b"7")), (b'{"error":{"message":"slow down"}}',))
    error = await Run(World(FakePicker(ENGINE_A, NONE_LEFT), FakeUpstream(limited))).error()
    assert (error.status, error.body) == (429, b'{"error":{"message":"slow down"}}')
    assert (b"retry-after", b"7") in error.headers


async def test_the_clients_own_fault_is_told_without_a_second_attempt() -> None:
    world = World(FakePicker(ENGINE_A, ENGINE_B), FakeUpstream(FakeAnswer(400, JSON, (b'{"error":{}}',))))
    assert (await Run(world).error()).body == b'{"error":{}}'
    assert len(world.picker.picks) == 1


async def test_h19_a_refused_credential_of_ours_is_the_gateways_fault_and_told_to_the_picker() -> None:
    world = World(FakePicker(PROVIDER, NONE_LEFT), FakeUpstream(FakeAnswer(401, JSON, (PROVIDER_KEY.encode(),))))
    refusal = await Run(world).refusal()
    assert (refusal.fault.status, refusal.fault.code) == (502, "upstream_auth_error")
    assert PROVIDER_KEY not in refusal.message
    assert world.picker.aborted == [(ResponseId(1), AbortReason.BACKEND_UNAUTHORIZED)]


async def test_h19_another_destination_is_tried_first() -> None:
    world = World(FakePicker(PROVIDER, ENGINE_A), FakeUpstream(FakeAnswer(403), FakeAnswer()))
    await Run(world).delivery()
    assert world.upstream.requests[1].origin == "http://10.0.0.1:8000"


async def test_h5_an_account_out_of_credit_fails_over() -> None:
    broke = FakeAnswer(400, JSON, (b'{"error":{"message":"Your credit balance is too low"}}',))
    world = World(FakePicker(PROVIDER, ENGINE_A), FakeUpstream(broke, FakeAnswer()))
    await Run(world).delivery()
    assert world.picker.aborted == [(ResponseId(1), AbortReason.BACKEND_UNAUTHORIZED)]


async def test_a_backend_that_cannot_be_resolved_is_told_to_the_picker_and_passed_over() -> None:
    unknown = ProviderTarget(ObjectRef("default", "other"))
    world = World(FakePicker(unknown, ENGINE_A), FakeUpstream(FakeAnswer()))
    await Run(world).delivery()
    assert world.picker.aborted == [(ResponseId(1), AbortReason.BACKEND_UNRESOLVED)]
    assert world.picker.first == []


async def test_an_endpoint_that_has_just_left_the_fleet_is_passed_over() -> None:
    world = World(FakePicker(ENGINE_A, ENGINE_B), FakeUpstream(FakeAnswer()))
    locate = world.directory.locate
    world.directory = replace(world.directory, locate=lambda to: None if to == ENGINE_A.address else locate(to))
    await Run(world).delivery()
    assert world.picker.aborted == [(ResponseId(1), AbortReason.NOT_DISPATCHED)]


async def test_h11_a_destination_that_hangs_costs_the_client_no_second_wait() -> None:
    world = World(FakePicker(ENGINE_A, ENGINE_B), FakeUpstream(UpstreamTimeout("silent")))
    assert (await Run(world).refusal()).fault.status == 504
    assert len(world.upstream.requests) == 1


async def test_j1_what_the_client_is_told_names_no_address() -> None:
    refusal = await Run(World(FakePicker(ENGINE_A, NONE_LEFT), FakeUpstream(DOWN))).refusal()
    assert "10.0.0.1" not in refusal.message


@pytest.mark.parametrize(
    ("picked", "status", "code"),
    [
        (NONE_LEFT, 503, "overloaded"),
        (PickResult(Outcome.NO_WORKERS, "unknown", "gpt-9"), 404, "model_not_found"),
        (PickResult(Outcome.NO_WORKERS, "context: 2 too short", "m"), 400, "context_length_exceeded"),
        (PickResult(Outcome.NO_WORKERS, "api: 1 of another API", "m"), 400, "unsupported_api"),
        (PickResult(Outcome.BAD_REQUEST, "not JSON"), 400, None),
        (PickResult(Outcome.POLICY_REJECTED, "quota: used up", "m"), 429, "rate_limit_exceeded"),
    ],
)
async def test_a_refused_pick_is_told(picked: PickResult, status: int, code: str | None) -> None:
    refusal = await Run(World(FakePicker(picked))).refusal()
    assert (refusal.fault.status, refusal.fault.code) == (status, code)


async def test_i3_a_body_over_our_own_limit_is_too_large() -> None:
    with pytest.raises(BudgetExceeded):
        await Run(World(), bytes_max=10).outcome()


async def test_a_picker_whose_buffers_are_full_is_not_the_clients_fault() -> None:
    world = World()
    world.picker.room = len(BODY) - 1
    with pytest.raises(RetryLater):
        await Run(world).outcome()


async def test_a_body_is_counted_no_longer_once_it_is_placed() -> None:
    world = World(upstream=FakeUpstream(FakeAnswer()))
    await Run(world).delivery()
    assert world.picker.held == 0


@pytest.mark.parametrize("error", [Draining("stopping"), ClientGone("left")])
async def test_what_stops_the_first_pick_stops_the_request(error: KinferenceError) -> None:
    with pytest.raises(type(error)):
        await Run(World(FakePicker(error))).outcome()


async def test_what_stops_a_second_pick_leaves_the_first_failure_standing() -> None:
    world = World(FakePicker(ENGINE_A, Draining("stopping")), FakeUpstream(DOWN))
    assert (await Run(world).refusal()).fault.status == 502


async def test_an_answer_of_the_kind_that_was_not_asked_for_is_brought_into_the_other() -> None:
    for told in (True, False):
        streamed = FakeAnswer(200, EVENTS, (b"data: [DONE]\n\n",))
        for body, answer, streams in ((STREAMING, FakeAnswer(), True), (BODY, streamed, False)):
            world = World(upstream=FakeUpstream(answer))
            world.picker.streams = streams if told else None
            back = (await Run(world, body).delivery()).way_back
            assert back is not None
            assert (back.back.client, back.back.destination, back.back.is_streaming) == (CHAT, CHAT, streams)


@pytest.mark.parametrize("told", [True, None])
async def test_an_answer_of_the_kind_that_was_asked_for_goes_out_as_it_is(told: bool | None) -> None:
    world = World(upstream=FakeUpstream(FakeAnswer(200, EVENTS, (b"data: [DONE]\n\n",))))
    world.picker.streams = told
    assert (await Run(world, STREAMING).delivery()).way_back is None


async def test_where_it_cannot_be_it_is_no_answer_and_its_connection_is_given_back() -> None:
    answer, other = FakeAnswer(), FakeAnswer(200, EVENTS, (b"data: [DONE]\n\n",))
    world = World(FakePicker(ENGINE_A, ENGINE_B), FakeUpstream(answer, other))
    body = STREAMING.replace(b'"m"', b'"m","n":2')
    assert (await Run(world, body).delivery()).way_back is None
    assert (answer.is_closed, len(world.upstream.requests)) == (True, 2)


@pytest.mark.parametrize("told", [None, StreamUsage.NOT_ASKED, StreamUsage.REFUSED])
@pytest.mark.parametrize("api", [Api.OPENAI_CHAT, Api.OPENAI_COMPLETIONS])
async def test_g13_usage_is_asked_for_where_a_streaming_client_did_not(api: Api, told: StreamUsage | None) -> None:
    world = World(upstream=FakeUpstream(FakeAnswer(200, EVENTS, (b"data: [DONE]\n\n",))))
    world.picker.usage = told
    delivery = await Run(world, STREAMING, api=api).delivery()
    assert delivery.hide_usage
    assert json.loads(world.upstream.body)["stream_options"] == {"include_usage": True}
    assert delivery.body_bytes == len(STREAMING)


@pytest.mark.parametrize(
    ("body", "api"),
    [
        (BODY, Api.OPENAI_CHAT),
        (STREAMING.replace(b"true", b"false"), Api.OPENAI_CHAT),
        (STREAMING.replace(b"true", b'true,"stream_options":{"include_usage":true}'), Api.OPENAI_CHAT),
        (STREAMING, Api.ANTHROPIC_MESSAGES),
        (STREAMING.replace(b"true", b'"yes"'), Api.OPENAI_CHAT),
        (STREAMING, Api.OPENAI_RESPONSES),
        (STREAMING.replace(b"true", b'true,"stream_options":1' + b',"a":1' * 5_000), Api.OPENAI_CHAT),  # too much in it
    ],
)
async def test_any_other_body_goes_out_byte_for_byte(body: bytes, api: Api) -> None:
    world = World(upstream=FakeUpstream(FakeAnswer()))
    delivery = await Run(world, body, api=api).delivery()
    assert not delivery.hide_usage
    assert world.upstream.body == body


async def test_usage_that_the_picker_found_settled_is_not_asked_for() -> None:
    world = World(upstream=FakeUpstream(FakeAnswer()))
    world.picker.usage = StreamUsage.SETTLED
    assert not (await Run(world, STREAMING).delivery()).hide_usage


async def test_closing_closes_the_answer_and_the_open_ticket() -> None:
    answer = FakeAnswer()
    world = World(upstream=FakeUpstream(answer))
    run = Run(world)
    await run.delivery()
    await run.dispatch.close()
    assert answer.is_closed
    assert world.picker.aborted == [(ResponseId(1), AbortReason.UNSPECIFIED)]


async def test_closing_before_anything_was_picked_does_nothing() -> None:
    world = World()
    await Run(world).dispatch.close()
    assert world.picker.aborted == []


async def test_waiting_for_destinations_is_not_our_own_time() -> None:
    world = World(FakePicker(ENGINE_A, ENGINE_B), FakeUpstream(FakeAnswer(503), FakeAnswer()))

    class Slow(FakeUpstream):
        async def send(self, request: object) -> FakeAnswer:
            world.clock.time += 2.0
            return await super().send(request)  # type: ignore[arg-type] # only recorded

    world.upstream = Slow(FakeAnswer(503), FakeAnswer())
    run = Run(world)
    await run.delivery()
    assert run.record.upstream_s == 4.0


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"message": "no such thing", "type": "invalid_request_error"}, 400),
        ({"message": "no such thing", "type": "BadRequestError", "code": 422}, 422),
    ],
)
async def test_a_stream_that_begins_with_the_clients_own_fault_has_its_status(error: object, status: int) -> None:
    told = json.dumps({"error": error}).encode()
    failing = FakeAnswer(200, EVENTS, (b"data: " + told + b"\n\n",))
    answer = await Run(World(FakePicker(ENGINE_A, ENGINE_B), FakeUpstream(failing, FakeAnswer())), STREAMING).error()
    assert (answer.status, answer.body, answer.headers) == (status, told, JSON)
    assert failing.is_closed


async def test_j8_our_credential_is_taken_out_of_a_streamed_error_too() -> None:
    told = b'data: {"error":{"message":"bad ' + PROVIDER_KEY.encode() + b'","type":"invalid_request_error"}}\n\n'
    run = Run(World(FakePicker(PROVIDER), FakeUpstream(FakeAnswer(200, EVENTS, (told,)))), STREAMING)
    assert PROVIDER_KEY.encode() not in (await run.error()).body


async def test_what_goes_to_bedrock_is_signed_over_the_body_that_is_sent() -> None:
    keys = AwsKeys("AKID", "hidden", "while", "us-east-1")
    place = BackendRoute(PROVIDER.backend, "https://bedrock-runtime.us-east-1.amazonaws.com", "", Api.OPENAI_CHAT, keys)
    world = World(FakePicker(PROVIDER), FakeUpstream(FakeAnswer(200, EVENTS, (b"data: [DONE]\n\n",))))
    world.directory = replace(world.directory, resolve={PROVIDER.backend: place}.get)
    await Run(world, STREAMING).delivery()
    request = world.upstream.requests[-1]
    signable = Signable("POST", request.origin, request.target, request.body)
    assert list(request.headers[-3:]) == signature(signable, keys, "bedrock", 100.0)
    assert b"include_usage" in world.upstream.body


MESSAGES = b'{"model":"m","max_tokens":9,"top_k":3,"messages":[{"role":"user","content":"hello there"}]}'
NO_PATHS = (
    FakeAnswer(404, JSON, (b'{"detail":"Not Found"}',)),
    FakeAnswer(404, JSON, (b'{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}',)),
    FakeAnswer(405, (), (b"",)),
)


async def test_what_leads_the_answer_back_is_not_found_out_again_where_the_picker_told() -> None:
    told = translated(MESSAGES, Way(Api.ANTHROPIC_MESSAGES, Api.OPENAI_CHAT, "m"))[1]
    world = World(picker=FakePicker(PROVIDER), upstream=FakeUpstream(FakeAnswer()))
    world.picker.way_back = told
    delivery = await Run(world, MESSAGES, api=Api.ANTHROPIC_MESSAGES, path="/v1/messages").delivery()
    assert delivery.way_back is told


@pytest.mark.parametrize("missing", NO_PATHS)
async def test_an_engine_without_the_clients_api_is_asked_in_chat_and_known_for_it_then(missing: FakeAnswer) -> None:
    world = World(upstream=FakeUpstream(missing, FakeAnswer(), FakeAnswer()))
    outside = world.outside
    world_at_once = [outside, outside]
    for number, seen in enumerate(world_at_once):
        run = Run(world, MESSAGES, api=Api.ANTHROPIC_MESSAGES, path="/v1/messages")
        run.dispatch = Dispatch(seen, GatewayOptions(), run.record, run.order)
        delivery = await run.delivery()
        assert delivery.way_back is not None
        assert delivery.way_back.warnings == "dropped=top_k"
        assert [request.target for request in world.upstream.requests[1:]] == ["/v1/chat/completions"] * (number + 1)
    assert json.loads(world.upstream.body)["max_tokens"] == 9
    assert world.picker.aborted == []


async def test_an_engine_that_lacks_the_model_is_not_asked_in_chat() -> None:
    told = b'{"error":{"message":"The model `m` does not exist.","type":"NotFoundError","code":404}}'
    world = World(upstream=FakeUpstream(FakeAnswer(404, JSON, (told,))))
    answer = await Run(world, MESSAGES, api=Api.ANTHROPIC_MESSAGES, path="/v1/messages").error()
    assert (answer.status, len(world.upstream.requests)) == (404, 1)


async def test_what_cannot_be_said_in_chat_is_refused() -> None:
    held = b'{"model":"m","max_tokens":9,"container":"c","messages":[{"role":"user","content":"hi"}]}'
    world = World(upstream=FakeUpstream(FakeAnswer(404, JSON, (b'{"detail":"Not Found"}',))))
    refusal = await Run(world, held, api=Api.ANTHROPIC_MESSAGES, path="/v1/messages").refusal()
    assert refusal.fault.status == 400
    assert "container" in refusal.message


async def test_tokens_are_counted_by_an_engines_own_count_or_by_its_tokenizer_or_estimated() -> None:
    path, missing = "/v1/messages/count_tokens", FakeAnswer(404, JSON, (b'{"detail":"Not Found"}',))
    world = World(upstream=FakeUpstream(FakeAnswer()))
    assert not (await Run(world, MESSAGES, api=Api.ANTHROPIC_MESSAGES, path=path).delivery()).is_foreign_count
    world = World(upstream=FakeUpstream(missing, FakeAnswer(200, JSON, (b'{"count":7}',))))
    assert (await Run(world, MESSAGES, api=Api.ANTHROPIC_MESSAGES, path=path).delivery()).is_foreign_count
    assert world.upstream.requests[-1].target == "/tokenize"
    assert json.loads(world.upstream.body) == {"model": "m", "messages": [{"role": "user", "content": "hello there"}]}
    world = World(upstream=FakeUpstream(missing, missing))
    assert await Run(world, MESSAGES, api=Api.ANTHROPIC_MESSAGES, path=path).outcome() == Estimated(3)


def limited(retry_after: bytes) -> FakeAnswer:
    return FakeAnswer(429, (*JSON, (b"retry-after", retry_after)), (b'{"error":{"message":"slow down"}}',))


async def test_h1_where_all_were_asked_too_often_the_longest_time_that_they_ask_for_is_told() -> None:
    world = World(FakePicker(ENGINE_A, ENGINE_B, NONE_LEFT), FakeUpstream(limited(b"30"), limited(b"7")))
    assert [value for name, value in (await Run(world).error()).headers if name == b"retry-after"] == [b"30"]
    world = World(FakePicker(ENGINE_A, ENGINE_B, NONE_LEFT), FakeUpstream(DOWN, limited(b"7")))
    assert [value for name, value in (await Run(world).error()).headers if name == b"retry-after"] == [b"7"]


async def test_an_error_that_follows_the_beginning_of_a_stream_is_another_destinations_request() -> None:
    role = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
    broken = FakeAnswer(200, EVENTS, (role, b'data: {"error":{"message":"busy","code":503}}\n\n'))
    for failed in (broken, FakeAnswer(200, EVENTS, (role,))):
        world = World(FakePicker(ENGINE_A, ENGINE_B), FakeUpstream(failed, FakeAnswer()))
        await Run(world).delivery()
        assert len(world.upstream.requests) == 2


async def test_a_providers_id_of_a_request_is_kept_and_an_engines_is_none() -> None:
    for target, kept in ((PROVIDER, "req_theirs"), (ENGINE_A, "")):
        run = Run(World(FakePicker(target), FakeUpstream(FakeAnswer(200, (*JSON, (b"request-id", b"req_theirs"))))))
        await run.delivery()
        assert run.record.upstream_id == kept

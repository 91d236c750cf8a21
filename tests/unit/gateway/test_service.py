import asyncio
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from kinference.errors import ClientGone, Draining, KinferenceError
from kinference.gateway.auth import ClientKey
from kinference.gateway.backends import ServedModel
from kinference.gateway.options import GatewayOptions
from kinference.gateway.service import Gateway
from kinference.ids import ResponseId
from kinference.ports import Headers, PickResult
from kinference.vocabulary import AbortReason, Outcome, QosClass
from kinference.wire.strangers import OwnNames
from tests.unit.gateway.fakes import (
    CUT,
    EVENTS,
    JSON,
    FakeAnswer,
    FakeExchange,
    FakePicker,
    FakeUpstream,
    World,
    directory,
)

CHAT = "/v1/chat/completions"
BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
KEYS = (ClientKey("sk-tenant-123", "acme", QosClass.BATCH),)
CLOSED = GatewayOptions(keys=KEYS, allow_unauthenticated=False)
CHUNK = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'


async def serve(
    exchange: FakeExchange, world: World | None = None, options: GatewayOptions | None = None
) -> FakeExchange:
    world = world or World(upstream=FakeUpstream(FakeAnswer()))
    await Gateway(world.outside, options or GatewayOptions()).handle(exchange)
    return exchange


def get(path: str, headers: Headers = (), method: str = "GET") -> FakeExchange:
    return FakeExchange(path, method=method, headers=headers)


@pytest.mark.parametrize(
    ("path", "method"), [(path, method) for path in ("/", "/health") for method in ("HEAD", "GET")]
)
async def test_i1_preflights_are_answered_even_where_a_key_is_needed(path: str, method: str) -> None:
    exchange = await serve(get(path, method=method), options=CLOSED)
    assert (exchange.status, exchange.answer) == (200, b"")


@pytest.mark.parametrize(
    ("path", "headers", "kind"),
    [
        ("/v1/nowhere", (), "openai"),
        ("/v1/messages/batches", (), "anthropic"),
        ("/v1/nowhere", ((b"anthropic-version", b"2023-06-01"),), "anthropic"),
    ],
)
async def test_an_unknown_path_is_not_found_in_the_clients_dialect(path: str, headers: Headers, kind: str) -> None:
    exchange = await serve(get(path, headers))
    assert exchange.status == 404
    assert json.loads(exchange.answer)["error"]["type"] == "not_found_error"
    assert ("request_id" in json.loads(exchange.answer)) is (kind == "anthropic")


@pytest.mark.parametrize(
    ("path", "method", "allow"),
    [(CHAT, "GET", b"POST"), ("/v1/models", "POST", b"GET"), ("/health", "PUT", b"GET, HEAD")],
)
async def test_a_wrong_method_is_told_the_right_ones(path: str, method: str, allow: bytes) -> None:
    exchange = await serve(get(path, method=method))
    assert (exchange.status, exchange.field(b"allow")) == (405, allow)


async def test_an_answer_names_its_endpoint_its_request_and_our_time() -> None:
    exchange = await serve(FakeExchange(CHAT, (BODY,), headers=((b"x-request-id", b"mine"),)))
    assert (exchange.status, exchange.answer, exchange.is_finished) == (200, b"{}", True)
    assert exchange.field(b"x-kinference-endpoint") == b"10.0.0.1:8000"
    assert exchange.field(b"x-request-id") == b"mine"
    assert exchange.field(b"x-kinference-overhead-ms") == b"0.000"


async def test_a_request_without_an_id_gets_one_that_the_destination_sees_too() -> None:
    world = World(upstream=FakeUpstream(FakeAnswer()))
    exchange = await serve(FakeExchange(CHAT, (BODY,), headers=((b"x-request-id", b"not an id"),)), world)
    request_id = exchange.field(b"x-request-id")
    assert request_id is not None
    assert request_id.startswith(b"req_")
    assert world.upstream.field(b"x-request-id") == [request_id]
    assert world.picker.picks[0].client_request_id == request_id.decode()


async def test_j2_a_wrong_key_is_refused_and_repeated_to_nobody(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = ((b"authorization", b"Bearer sk-wrong-456"),)
    exchange = await serve(FakeExchange(CHAT, (BODY,), headers=wrong), options=CLOSED)
    assert exchange.status == 401
    assert json.loads(exchange.answer)["error"]["code"] == "invalid_api_key"
    assert b"sk-wrong" not in exchange.answer
    assert "sk-wrong" not in caplog.text + "".join(str(vars(line)) for line in caplog.records)
    assert exchange.body_read == 0


async def test_a_key_settles_tenant_and_class_and_goes_no_further() -> None:
    world = World(upstream=FakeUpstream(FakeAnswer()))
    key = ((b"authorization", b"Bearer sk-tenant-123"), (b"x-api-key", b"sk-tenant-123"))
    await serve(FakeExchange(CHAT, (BODY,), headers=key), world, CLOSED)
    assert (world.picker.picks[0].tenant, world.picker.picks[0].qos) == ("acme", QosClass.BATCH)
    assert world.upstream.field(b"authorization") == world.upstream.field(b"x-api-key") == []


@pytest.mark.parametrize(("path", "code"), [(CHAT, "request_too_large"), ("/v1/messages", None)])
async def test_i3_too_large_a_body_is_told_so_in_the_clients_dialect(path: str, code: str | None) -> None:
    options = GatewayOptions(body_bytes_max=5)
    exchange = await serve(FakeExchange(path, (b"123", b"456", b"789")), options=options)
    assert exchange.status == 413
    assert exchange.body_read == 2
    error = json.loads(exchange.answer)["error"]
    assert error.get("code") == code
    assert error["type"] == ("request_too_large" if code is None else "invalid_request_error")


async def test_bodies_that_are_refused_at_a_limit_are_counted_by_its_key() -> None:
    small, crowded = World(), World()
    await serve(FakeExchange(CHAT, (BODY,)), small, GatewayOptions(body_bytes_max=5))
    crowded.picker.room = 0
    await serve(FakeExchange(CHAT, (BODY,)), crowded)
    for world, limit in ((small, "body_max_bytes"), (crowded, "buffer_max_bytes")):
        shown = [line for line in world.metrics.exposition().decode().splitlines() if "bodies_refused_total{" in line]
        assert shown == [f'kinference_bodies_refused_total{{limit="{limit}"}} 1.0']


async def test_a_picker_that_is_stopping_sends_clients_away_for_a_while() -> None:
    exchange = await serve(FakeExchange(CHAT, (BODY,)), World(FakePicker(Draining("stopping"))))
    assert (exchange.status, exchange.field(b"retry-after")) == (503, b"1")


async def test_full_buffers_are_an_overload_and_not_the_clients_fault() -> None:
    world = World()
    world.picker.room = 0
    assert (await serve(FakeExchange(CHAT, (BODY,)), world)).status == 503


async def test_a_destinations_error_is_relayed_byte_for_byte() -> None:
    world = World(upstream=FakeUpstream(FakeAnswer(422, JSON, (b'{ "x": 1.0 }',))))
    exchange = await serve(FakeExchange(CHAT, (BODY,)), world)
    assert (exchange.status, exchange.answer) == (422, b'{ "x": 1.0 }')


@pytest.mark.parametrize(("headers", "status"), [((), 400), (((b"content-encoding", b"gzip"),), 415)])
async def test_a_compressed_body_is_told_why_it_cannot_be_read(headers: Headers, status: int) -> None:
    world = World(FakePicker(PickResult(Outcome.BAD_REQUEST, "body is not UTF-8: invalid byte at 1")))
    exchange = await serve(FakeExchange(CHAT, (b"\x1f\x8b",), headers=headers), world)
    assert exchange.status == status
    told = json.loads(exchange.answer)["error"]["message"]
    assert told.startswith("body is not UTF-8")
    assert ("content-encoding" in told) is bool(headers)


async def test_models_are_listed_as_far_as_the_tenant_may_use_them() -> None:
    models = (ServedModel("a"), ServedModel("b"), ServedModel("gpt-*", is_glob=True))
    world = World(directory=replace(directory(), models=lambda: models, allows=lambda tenant, name: name == "b"))
    exchange = await serve(get("/v1/models"), world)
    assert [model["id"] for model in json.loads(exchange.answer)["data"]] == ["b"]
    assert (await serve(get("/v1/models/a"), world)).status == 404
    assert (await serve(get("/v1/models/b"), world)).status == 200
    assert json.loads((await serve(get("/v1beta/models/b"), world)).answer)["name"] == "models/b"
    refused = json.loads((await serve(get("/v1beta/models/a"), world)).answer)
    assert refused["error"]["status"] == "NOT_FOUND"


async def test_models_are_listed_for_anthropic_clients_in_their_dialect() -> None:
    exchange = await serve(get("/v1/models", ((b"anthropic-version", b"2023-06-01"),)))
    assert json.loads(exchange.answer)["has_more"] is False


@pytest.mark.parametrize("path", ["/v1/models/org/m", "/v1/models/org%2Fm"])
async def test_a_model_is_found_by_an_id_with_slashes(path: str) -> None:
    exchange = await serve(get(path), World(directory=directory("org/m")))
    assert json.loads(exchange.answer)["id"] == "org/m"


async def test_a_request_is_logged_without_body_key_or_query(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    exchange = FakeExchange(CHAT, (BODY,), headers=((b"x-api-key", b"sk-tenant-123"),))
    exchange.query = "secret-query=1"
    await serve(exchange)
    (line,) = [line for line in caplog.records if line.name == "kinference.gateway"]
    fields = vars(line)
    assert (fields["tenant"], fields["model"], fields["outcome"], fields["status"]) == ("", "m", "ok", 200)
    for secret in ("secret-query", "sk-tenant", '"content"'):
        assert secret not in str(fields)


async def test_a_client_that_vanishes_during_its_upload_is_logged_as_gone(caplog: pytest.LogCaptureFixture) -> None:
    class Vanishing(FakeExchange):
        async def body(self) -> AsyncIterator[bytes]:
            yield b"{"
            raise ClientGone("reset")

    caplog.set_level(logging.INFO)
    world = World()
    with pytest.raises(ClientGone):
        await serve(Vanishing(CHAT), world)
    assert vars(caplog.records[-1])["outcome"] == "client_closed"
    assert world.picker.picks == []


async def test_a_client_that_vanishes_before_the_answer_frees_the_destination() -> None:
    sent = asyncio.Event()

    class Hanging(FakeUpstream):
        async def send(self, request: object) -> FakeAnswer:
            sent.set()
            await asyncio.Event().wait()
            return FakeAnswer()

    world = World(upstream=Hanging())
    async with asyncio.TaskGroup() as tasks:
        handling = tasks.create_task(serve(FakeExchange(CHAT, (BODY,)), world))
        await sent.wait()
        handling.cancel()
    assert handling.cancelled()
    assert world.picker.aborted == [(ResponseId(1), AbortReason.UNSPECIFIED)]


async def test_g7_a_client_that_vanishes_mid_stream_closes_the_destination_and_is_reported() -> None:
    streaming = asyncio.Event()

    class Endless(FakeAnswer):
        async def chunks(self) -> AsyncIterator[bytes]:
            async for chunk in super().chunks():
                yield chunk
            streaming.set()
            await asyncio.Event().wait()

    answer = Endless(200, EVENTS, (CHUNK,))
    world = World(upstream=FakeUpstream(answer))
    async with asyncio.TaskGroup() as tasks:
        handling = tasks.create_task(serve(FakeExchange(CHAT, (BODY.replace(b'"m"', b'"m","stream":true'),)), world))
        await streaming.wait()
        handling.cancel()
    assert answer.is_closed
    assert [report.completion_tokens for report in world.picker.final] == [1]
    assert world.picker.aborted == []


@pytest.mark.parametrize("chunks", [(b"{}",), (b"{", CUT), (CUT,)])
async def test_a_destination_is_closed_however_its_answer_ends(chunks: tuple[bytes | KinferenceError, ...]) -> None:
    answer = FakeAnswer(200, JSON, chunks)
    await serve(FakeExchange(CHAT, (BODY,)), World(upstream=FakeUpstream(answer, answer, answer)))
    assert answer.is_closed


@pytest.mark.parametrize("path", ["/chat/completions", "/v1/v1/chat/completions"])
async def test_a_base_url_without_the_version_or_with_it_twice_is_told(path: str) -> None:
    exchange = await serve(get(path))
    assert exchange.status == 404
    assert "did you mean /v1/chat/completions?" in json.loads(exchange.answer)["error"]["message"]


async def test_an_error_says_what_to_ask_for_instead() -> None:
    told = {}
    for request in (get("/v1/images"), get(CHAT), get("/v1/models/gone"), get("/health", method="POST")):
        told[request.path] = json.loads((await serve(request)).answer)["error"]["message"]
    assert CHAT in told["/v1/images"]
    assert "/v1beta/models/MODEL:generateContent" in told["/v1/images"]
    assert told[CHAT] == "GET is not served here; use POST"
    assert told["/health"] == "POST is not served here; use GET or HEAD"
    assert "GET /v1/models" in told["/v1/models/gone"]


@pytest.mark.parametrize(("loss", "status"), [(b"stirct", 400), (b"", 400), (b" Strict ", 200), (b"silent", 200)])
async def test_a_mistyped_loss_is_refused_before_anything_is_lost(loss: bytes, status: int) -> None:
    exchange = await serve(FakeExchange(CHAT, (BODY,), headers=((b"x-kinference-loss", loss),)))
    assert exchange.status == status
    assert status == 200 or "strict" in json.loads(exchange.answer)["error"]["message"]


LOCAL = GatewayOptions(own_names=OwnNames(["chat.example"]))
KEYED = GatewayOptions(keys=KEYS, allow_unauthenticated=True, own_names=OwnNames())


@pytest.mark.parametrize(
    ("options", "origin", "key", "status"),
    [
        (LOCAL, b"http://evil.test:8080", b"", 403),
        (LOCAL, b"http://evil.test:8080", b"Bearer anything", 403),
        (LOCAL, b"null", b"", 403),
        (LOCAL, b"https://chat.example", b"", 200),
        (LOCAL, b"http://localhost:3000", b"", 200),
        (KEYED, b"http://evil.test", b"", 403),
        (KEYED, b"http://evil.test", b"Bearer sk-tenant-123", 200),
        (GatewayOptions(), b"http://evil.test", b"", 200),
    ],
)
async def test_a_web_page_from_elsewhere_needs_a_key_where_only_this_machine_reaches_us(
    options: GatewayOptions, origin: bytes, key: bytes, status: int
) -> None:
    fields = ((b"origin", origin), *(((b"authorization", key),) if key else ()))
    exchange = await serve(FakeExchange(CHAT, (BODY,), headers=fields), options=options)
    assert exchange.status == status
    assert status == 200 or "gateway.keys" in json.loads(exchange.answer)["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/models", "/v1beta/models", "/v1/models/a"])
@pytest.mark.parametrize(
    ("options", "host", "key", "is_told"),
    [
        (LOCAL, b"evil.test:8080", b"", False),
        (LOCAL, b"evil.test:8080", b"Bearer anything", False),
        (LOCAL, b"chat.example", b"", True),
        (LOCAL, b"127.0.0.1:8080", b"", True),
        (KEYED, b"evil.test:8080", b"", False),
        (KEYED, b"evil.test:8080", b"Bearer sk-tenant-123", True),
        (GatewayOptions(), b"evil.test:8080", b"", True),
    ],
)
async def test_a_page_whose_name_leads_here_reads_no_list_of_models(
    path: str, options: GatewayOptions, host: bytes, key: bytes, is_told: bool
) -> None:
    fields = ((b"host", host), *(((b"authorization", key),) if key else ()))
    world = World(directory=directory("a"))
    exchange = await serve(get(path, fields), world, options)
    assert exchange.status == (200 if is_told else 403)
    assert (b'"a"' in exchange.answer or b"models/a" in exchange.answer) is is_told

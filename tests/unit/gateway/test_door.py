import pytest

from kinference.gateway import errors
from kinference.gateway.auth import ANYONE, Caller, ClientKey
from kinference.gateway.door import Door, Turned, Visit, explained, loss_of
from kinference.gateway.errors import Refusal
from kinference.gateway.options import GatewayOptions
from kinference.gateway.routes import Dialect, Route, find
from kinference.ports import Headers
from kinference.vocabulary import Api, Loss, QosClass
from kinference.wire.strangers import OwnNames
from tests.unit.gateway.fakes import FakeExchange, World

CHAT = "/v1/chat/completions"
KEYS = (ClientKey("sk-tenant-123", "acme", QosClass.BATCH),)


def visit(exchange: FakeExchange, options: GatewayOptions | None = None) -> tuple[Door, Visit]:
    door = Door(World().outside, options or GatewayOptions())
    return door, door.meet(exchange)


def let_in(exchange: FakeExchange, options: GatewayOptions | None = None) -> Route | Turned:
    door, came = visit(exchange, options)
    return door.let_in(came, find(exchange.path))


def turned(exchange: FakeExchange, options: GatewayOptions | None = None) -> Turned:
    outcome = let_in(exchange, options)
    assert isinstance(outcome, Turned)
    return outcome


def test_a_request_keeps_its_own_id_and_gets_one_where_it_has_none() -> None:
    _, named = visit(FakeExchange(CHAT, headers=((b"x-request-id", b"mine"),)))
    assert named.record.request_id == "mine"
    door, first = visit(FakeExchange(CHAT))
    second = door.meet(FakeExchange(CHAT))
    assert first.record.request_id.startswith("req_")
    assert first.record.request_id != second.record.request_id


@pytest.mark.parametrize(
    ("path", "headers", "dialect"),
    [
        (CHAT, (), Dialect.OPENAI),
        ("/v1/nowhere", ((b"anthropic-version", b"2023-06-01"),), Dialect.ANTHROPIC),
        ("/v1/models", ((b"x-goog-api-key", b"k"),), Dialect.GEMINI),
    ],
)
def test_a_request_is_answered_in_its_clients_dialect(path: str, headers: Headers, dialect: Dialect) -> None:
    assert visit(FakeExchange(path, headers=headers))[1].dialect is dialect


def test_a_long_path_is_noted_in_part() -> None:
    assert len(visit(FakeExchange("/" + "x" * 10_000))[1].record.path) == 200


def test_who_is_turned_away_is_told_why() -> None:
    assert turned(FakeExchange("/v1/nowhere")).refusal.fault is errors.NOT_FOUND
    wrong = turned(FakeExchange(CHAT, method="GET"))
    assert (wrong.refusal.fault, wrong.fields) == (errors.METHOD_NOT_ALLOWED, ((b"allow", b"POST"),))
    closed = GatewayOptions(keys=KEYS, allow_unauthenticated=False)
    keyless = turned(FakeExchange(CHAT), closed).refusal
    assert keyless.fault is errors.UNAUTHENTICATED
    assert all(field in keyless.message for field in ("authorization: Bearer", "x-api-key", "x-goog-api-key"))


def test_a_page_from_elsewhere_needs_a_key() -> None:
    options = GatewayOptions(own_names=OwnNames(), keys=KEYS)
    page = ((b"host", b"localhost"), (b"origin", b"https://elsewhere.test"))
    assert turned(FakeExchange(CHAT, headers=page), options).refusal.fault is errors.FORBIDDEN
    keyed = (*page, (b"authorization", b"Bearer sk-tenant-123"))
    assert let_in(FakeExchange(CHAT, headers=keyed), options) is find(CHAT)


def test_who_comes_in_is_known_by_key_and_noted() -> None:
    door, came = visit(FakeExchange(CHAT, headers=((b"x-api-key", b"sk-tenant-123"),)), GatewayOptions(keys=KEYS))
    route = door.let_in(came, find(CHAT))
    assert isinstance(route, Route)
    assert (came.caller, came.record.tenant, came.record.api) == (
        Caller("acme", QosClass.BATCH),
        "acme",
        "openai_chat",
    )


def test_a_route_that_infers_nothing_has_no_api_and_no_loss_to_mistype() -> None:
    door, came = visit(FakeExchange("/v1/models", method="GET", headers=((b"x-kinference-loss", b"stirct"),)))
    assert door.let_in(came, find("/v1/models")) is find("/v1/models")
    assert (came.record.api, came.caller) == ("", ANYONE)


def test_an_order_is_what_the_request_says() -> None:
    path = "/v1/messages/count_tokens"
    door, came = visit(FakeExchange(path, query="beta=true", headers=((b"x-kinference-loss", b"strict"),)))
    route = door.let_in(came, find(path))
    assert isinstance(route, Route)
    order = door.order(came, route)
    assert (order.inbound.path, order.inbound.query, order.inbound.api) == (path, "beta=true", Api.ANTHROPIC_MESSAGES)
    assert (order.counts, order.loss, order.body.whole) == (True, Loss.STRICT, b"")


@pytest.mark.parametrize(
    ("told", "configured", "loss"),
    [
        (None, Loss.WARN, Loss.WARN),
        (b"strict", Loss.WARN, Loss.STRICT),
        (b" Silent ", Loss.WARN, Loss.WARN),
        (b"stirct", Loss.WARN, None),
        (b"", Loss.SILENT, None),
    ],
)
def test_a_header_makes_loss_stricter_and_no_laxer(told: bytes | None, configured: Loss, loss: Loss | None) -> None:
    assert loss_of({} if told is None else {b"x-kinference-loss": told}, configured) is loss


def test_only_a_bad_request_of_a_compressed_body_is_explained_by_that() -> None:
    bad, other = Refusal(errors.BAD_REQUEST, "no JSON"), Refusal(errors.OVERLOADED, "later")
    coded = {b"content-encoding": b"gzip"}
    assert explained(bad, coded).fault is errors.COMPRESSED
    assert (explained(bad, {}), explained(other, coded)) == (bad, other)

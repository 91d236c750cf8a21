from collections.abc import AsyncIterator, Sequence
from types import MappingProxyType
from urllib.parse import urlencode

import msgspec
import pytest

from kinference.dashboard.admin import Admin, AdminSources
from kinference.dashboard.control import ControlApi
from kinference.dashboard.endpoints import EndpointsApi
from kinference.observe.metrics import EXPIRED, Metrics
from kinference.ports import Headers
from kinference.vocabulary import Role
from kinference.wire.access import Access, Token
from kinference.wire.exchange import Exchange, respond
from kinference.wire.strangers import OwnNames


class AskedExchange:
    """Stands in for a carrier: holds one request, keeps the answer."""

    def __init__(self, path: str, query: str = "", method: str = "GET") -> None:
        self.method, self.path, self.query = method, path, query
        self.headers: Headers = ()
        self.peer, self.accepted_at = "test", 0.0
        self.peer_names: Sequence[str] = ()
        self.status, self.answer_headers, self.sent = 0, dict[bytes, bytes](), b""

    def arrived(self) -> bytes | None:
        return None

    async def body(self) -> AsyncIterator[bytes]:
        yield b""

    async def start(self, status: int, headers: Headers) -> None:
        self.status, self.answer_headers = status, dict(headers)

    def send(self, chunk: bytes) -> bool:
        self.sent += chunk
        return True

    async def drained(self) -> None: ...

    async def write(self, chunk: bytes) -> None:
        self.send(chunk)

    async def finish(self) -> None: ...

    def abort(self) -> None: ...


TENANTS = ("", "acme", "b&after=c")
"""The first is that of requests without a credential."""


class NoControl(ControlApi):
    """Knows nothing; that its paths come here is all that matters."""

    def __init__(self) -> None: ...

    async def handle(self, exchange: Exchange, asker: str) -> None:
        await respond(exchange, 200, b"control" + asker.encode(), b"text/plain")


def admin(unready: str | None = None, access: Access | None = None, *, is_local: bool = True) -> Admin:
    metrics = Metrics()
    return Admin(
        AdminSources(
            metrics=metrics,
            endpoints=lambda: [{"address": "127.0.0.1:8000", "ready": True}],
            recordings=lambda limit: [{"r": n} for n in range(limit)][:10],
            refusals=lambda limit: [MappingProxyType({"f": n}) for n in range(limit)][:10],
            decisions=lambda limit: [{"n": n} for n in range(limit)][:100],
            tenants=lambda after, limit: [{"tenant": name} for name in TENANTS if after is None or name > after][
                :limit
            ],
            waiting=lambda: [{"longest_s": 2.0}],
            discovery=lambda: [{"pool": "default/p", "error": ""}],
            unready_reason=lambda: unready,
            refresh=lambda: metrics.count(EXPIRED, "body"),
            control=NoControl(),
            drains=EndpointsApi(lambda address, pool, draining: [{"address": address}]),
            access=access or Access(),
            names=OwnNames(["router.example"]),
            is_local=is_local,
        )
    )


async def ask(path: str, query: str = "", method: str = "GET", unready: str | None = None) -> AskedExchange:
    exchange = AskedExchange(path, query, method)
    await admin(unready).handle(exchange)
    return exchange


async def test_metrics_are_refreshed_before_they_are_shown() -> None:
    answer = await ask("/metrics")
    assert answer.status == 200
    assert answer.answer_headers[b"content-type"].startswith(b"text/plain; version=0.0.4")
    assert b'kinference_picker_expired_total{what="body"} 1.0' in answer.sent


async def test_liveness_does_not_depend_on_readiness() -> None:
    assert (await ask("/healthz", unready="no endpoint is ready")).status == 200
    not_ready = await ask("/readyz", unready="no endpoint is ready")
    assert (not_ready.status, not_ready.sent) == (503, b"not ready: no endpoint is ready\n")
    assert (await ask("/readyz")).status == 200


async def test_endpoints_are_json() -> None:
    assert msgspec.json.decode((await ask("/api/v1/endpoints")).sent) == {
        "endpoints": [{"address": "127.0.0.1:8000", "ready": True}]
    }


async def test_recordings_are_as_many_as_asked() -> None:
    assert msgspec.json.decode((await ask("/api/v1/recordings", "limit=2")).sent) == {
        "recordings": [{"r": 0}, {"r": 1}]
    }
    assert msgspec.json.decode((await ask("/api/v1/refusals", "limit=1")).sent) == {"refusals": [{"f": 0}]}
    assert (await ask("/api/v1/recordings", "limit=x")).status == 400


@pytest.mark.parametrize(("query", "shown"), [("", 50), ("limit=3", 3), ("limit=999999", 100)])
async def test_decisions_are_as_many_as_asked(query: str, shown: int) -> None:
    assert len(msgspec.json.decode((await ask("/api/v1/decisions", query)).sent)["decisions"]) == shown


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=-1", "limit=x", "limit=9999999", "limit=%D9%A3", "&".join(["limit=3"] * 17)]
)
async def test_a_senseless_limit_is_refused_with_an_example(query: str) -> None:
    answer = await ask("/api/v1/decisions", query)
    assert answer.status == 400
    assert b"?limit=20" in answer.sent


async def test_an_unknown_path_is_told_what_there_is() -> None:
    answer = await ask("/nope")
    assert answer.status == 404
    assert b"/api/v1/decisions" in answer.sent


@pytest.mark.parametrize("path", ["/api/v1/providers", "/api/v1/providers/p", "/api/v1/routes/inference.local"])
async def test_records_and_routes_are_the_control_planes(path: str) -> None:
    assert (await ask(path, method="PUT")).sent == b"control"


async def test_one_endpoint_is_for_drains_and_the_whole_list_only_to_read() -> None:
    exchange = AskedExchange("/api/v1/endpoints/h:1", method="PATCH")
    await admin().handle(exchange)
    assert msgspec.json.decode(exchange.sent)["error"]["message"] == "the body must be application/json"
    assert (await ask("/api/v1/endpoints", method="PATCH")).status == 405
    assert (await ask_as("scrape-token", "/api/v1/endpoints/h:1")).status == 403


async def test_nothing_else_can_be_changed() -> None:
    answer = await ask("/metrics", method="POST")
    assert (answer.status, answer.answer_headers[b"allow"]) == (405, b"GET, HEAD")


async def test_head_has_the_length_and_no_body() -> None:
    answer = await ask("/healthz", method="HEAD")
    assert (answer.status, answer.answer_headers[b"content-length"], answer.sent) == (200, b"3", b"")


GUARDED = Access([Token("ops", Role.ADMIN, "admin-token"), Token("prometheus", Role.METRICS, "scrape-token")])


async def ask_as(token: str, path: str) -> AskedExchange:
    exchange = AskedExchange(path)
    exchange.headers = ((b"authorization", f"Bearer {token}".encode()),) if token else ()
    await admin(access=GUARDED).handle(exchange)
    return exchange


@pytest.mark.parametrize("path", ["/metrics", "/api/v1/endpoints", "/api/v1/decisions", "/api/v1/providers", "/nope"])
@pytest.mark.parametrize("token", ["", "wrong"])
async def test_whoever_shows_no_known_token_is_told_to_show_one(path: str, token: str) -> None:
    answer = await ask_as(token, path)
    assert (answer.status, answer.answer_headers[b"www-authenticate"]) == (401, b'Bearer realm="kinference"')
    assert msgspec.json.decode(answer.sent)["error"]["code"] == "UNAUTHENTICATED"


@pytest.mark.parametrize("path", ["/api/v1/endpoints", "/api/v1/decisions", "/api/v1/providers", "/nope"])
async def test_a_scrapers_token_opens_the_metrics_alone(path: str) -> None:
    assert (await ask_as("scrape-token", "/metrics")).status == 200
    refused = await ask_as("scrape-token", path)
    assert (refused.status, msgspec.json.decode(refused.sent)["error"]["code"]) == (403, "PERMISSION_DENIED")


async def test_an_admins_token_opens_everything_and_names_its_holder() -> None:
    assert [(await ask_as("admin-token", path)).status for path in ("/metrics", "/api/v1/endpoints")] == [200, 200]
    assert (await ask_as("admin-token", "/api/v1/providers")).sent == b"controlops"


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_health_is_told_without_a_token(path: str) -> None:
    assert (await ask_as("", path)).status == 200


async def test_who_waits_is_listed() -> None:
    exchange = await ask("/api/v1/waiting")
    assert msgspec.json.decode(exchange.sent) == {"waiting": [{"longest_s": 2.0}]}


async def test_how_the_discovery_of_pools_fares_is_listed() -> None:
    exchange = await ask("/api/v1/discovery")
    assert msgspec.json.decode(exchange.sent) == {"discovery": [{"pool": "default/p", "error": ""}]}


async def test_tenants_are_listed_with_their_use() -> None:
    exchange = await ask("/api/v1/tenants")
    assert msgspec.json.decode(exchange.sent) == {"tenants": [{"tenant": name} for name in TENANTS], "next": None}


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
async def test_tenants_come_in_pages(limit: int) -> None:
    shown, query = [], f"limit={limit}"
    while True:
        page = msgspec.json.decode((await ask("/api/v1/tenants", query)).sent)
        assert len(page["tenants"]) <= limit
        shown += [one["tenant"] for one in page["tenants"]]
        if page["next"] is None:
            break
        query = urlencode({"limit": limit, "after": page["next"]})
    assert shown == list(TENANTS)
    assert (await ask("/api/v1/tenants", "limit=x")).status == 400


async def test_the_page_is_for_everybody_and_what_it_shows_is_not() -> None:
    pages = [await ask_as("", path) for path in ("/", "/page.js", "/page.css")]
    assert [page.status for page in pages] == [200, 200, 200]
    assert (await ask_as("", "/api/v1/waiting")).status == 401
    assert (await ask("/", method="POST")).status == 405


async def ask_under(host: bytes, path: str, access: Access | None = None, *, is_local: bool = True) -> AskedExchange:
    exchange = AskedExchange(path)
    exchange.headers = [(b"host", host), (b"authorization", b"Bearer admin-token")]
    await admin(access=access, is_local=is_local).handle(exchange)
    return exchange


GUARDED_PATHS = (
    "/metrics",
    "/api/v1/endpoints",
    "/api/v1/endpoints/h:1",
    "/api/v1/decisions",
    "/api/v1/recordings",
    "/api/v1/refusals",
    "/api/v1/tenants",
    "/api/v1/waiting",
    "/api/v1/discovery",
    "/api/v1/providers",
    "/api/v1/routes",
    "/nope",
)


@pytest.mark.parametrize("path", GUARDED_PATHS)
async def test_a_name_that_is_made_to_lead_here_reads_nothing_where_nobody_is_asked_for_a_token(path: str) -> None:
    answer = await ask_under(b"evil.test:9090", path)
    assert answer.status == 403
    assert msgspec.json.decode(answer.sent)["error"]["code"] == "PERMISSION_DENIED"


@pytest.mark.parametrize("path", ["/metrics", "/api/v1/decisions", "/api/v1/providers"])
async def test_our_own_names_read_all_and_so_does_any_where_a_token_is_shown_or_others_reach_the_port(
    path: str,
) -> None:
    for host in (b"localhost:9090", b"router.example", b"[::1]:9090"):
        assert (await ask_under(host, path)).status == 200
    assert (await ask_under(b"ops.test", path, GUARDED)).status == 200
    assert (await ask_under(b"kinference.prod.svc:9090", path, is_local=False)).status == 200


@pytest.mark.parametrize("path", ["/", "/page.js", "/healthz", "/readyz"])
async def test_what_shows_nothing_is_answered_under_any_name(path: str) -> None:
    assert (await ask_under(b"evil.test", path)).status == 200


async def test_a_page_from_elsewhere_changes_nothing() -> None:
    exchange = AskedExchange("/api/v1/endpoints/h:1", method="PATCH")
    exchange.headers = [(b"host", b"127.0.0.1:9090"), (b"origin", b"https://evil.test")]
    await admin().handle(exchange)
    assert exchange.status == 403

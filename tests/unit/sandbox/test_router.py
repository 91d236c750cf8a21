import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from kinference import ports
from kinference.errors import KinferenceError, UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from kinference.ports import Headers, UpstreamAnswer, UpstreamRequest
from kinference.sandbox.router import ANSWER_BYTES_MAX, BODY_BYTES_MAX, SandboxRouter
from kinference.sandbox.routes import RouteTable, SandboxRoute
from tests.unit.sandbox.asked import Asked

PROTOCOLS = ("openai_chat_completions", "openai_embeddings", "model_discovery")
ROUTE = SandboxRoute("inference.local", "https://up.secret-host.test/v1", PROTOCOLS, "sk-1", "m", "openai")
EVENTS = ((b"content-type", b"text/event-stream"),)
CHAT, EMBEDDINGS = "/v1/chat/completions", "/v1/embeddings"


class Upstream(UpstreamAnswer, ports.Upstream):
    """Answers with pieces; an error among them breaks the answer off, an error alone comes before it."""

    is_ready = False
    status = 0
    headers: Headers = ()

    def __init__(self, *pieces: bytes | KinferenceError, status: int = 200, headers: Headers = ()) -> None:
        self.pieces, self.status, self.headers = pieces, status, headers
        self.asked: list[UpstreamRequest] = []
        self.is_closed = False

    async def send(self, request: UpstreamRequest) -> "Upstream":
        self.asked.append(request)
        if len(self.pieces) == 1 and isinstance(self.pieces[0], KinferenceError):
            raise self.pieces[0]
        return self

    async def chunks(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, KinferenceError):
                raise piece
            yield piece

    async def close(self) -> None:
        self.is_closed = True


async def ask(
    upstream: Upstream,
    path: str = CHAT,
    chunks: Sequence[bytes] = (b"{}",),
    routes: Sequence[SandboxRoute] = (ROUTE,),
) -> Asked:
    exchange = Asked("GET" if path.startswith("/v1/models") else "POST", path, chunks)
    await SandboxRouter(RouteTable(routes), upstream).handle(exchange)
    return exchange


async def refusal(upstream: Upstream, path: str = CHAT, routes: Sequence[SandboxRoute] = (ROUTE,)) -> tuple[int, str]:
    answer = await ask(upstream, path, routes=routes)
    assert b"secret-host" not in answer.sent
    return answer.status, json.loads(answer.sent)["error"]


async def test_fact46_what_is_no_inference_is_not_allowed() -> None:
    assert await refusal(Upstream(), "/v1/files") == (403, "connection not allowed by policy")


@pytest.mark.parametrize(("origin", "status"), [(b"http://evil.test", 403), (b"https://inference.local", 200)])
async def test_a_web_page_from_elsewhere_has_no_use_of_it(origin: bytes, status: int) -> None:
    exchange = Asked("POST", CHAT, (b"{}",), ((b"origin", origin),))
    await SandboxRouter(RouteTable((ROUTE,)), Upstream(b"{}")).handle(exchange)
    assert exchange.status == status


async def test_fact47_what_is_not_allowed_ends_the_connection() -> None:
    assert (await ask(Upstream(), "/v1/files")).answered[b"connection"] == b"close"
    assert b"connection" not in (await ask(Upstream(b"{}"))).answered


async def test_fact48_without_routes_nothing_is_configured() -> None:
    assert await refusal(Upstream(), routes=()) == (503, "cluster inference is not configured")


async def test_fact45_a_protocol_that_no_route_speaks_is_told_so() -> None:
    assert await refusal(Upstream(), "/v1/messages") == (400, "no compatible inference route available")


async def test_fact51_a_streamed_answer_is_passed_on_as_it_comes() -> None:
    headers = (*EVENTS, (b"content-length", b"4"), (b"connection", b"close"), (b"x-request-id", b"r"))
    upstream = Upstream(b"ab", b"cd", headers=headers)
    answer = await ask(upstream)
    assert (answer.status, answer.sent, answer.is_finished) == (200, b"abcd", True)
    assert answer.answered == {b"content-type": b"text/event-stream", b"x-request-id": b"r"}
    assert json.loads(b"".join(upstream.asked[0].body))["model"] == "m"
    assert upstream.is_closed


async def test_fact44_an_upstreams_refusal_passes_through() -> None:
    answer = await ask(Upstream(b'{"error": "key"}', status=401))
    assert (answer.status, answer.sent) == (401, b'{"error": "key"}')


@pytest.mark.parametrize("path", [EMBEDDINGS, "/v1/models"])
async def test_fact50_a_buffered_answer_has_its_length(path: str) -> None:
    answer = await ask(Upstream(b"ab", b"cd", status=429), path)
    assert (answer.status, answer.sent, answer.answered[b"content-length"]) == (429, b"abcd", b"4")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (UpstreamCut("secret-host"), "upstream read error"),
        (UpstreamTimeout("secret-host"), "chunk idle timeout exceeded"),
    ],
)
async def test_fact53_a_broken_stream_of_events_says_so_in_its_last_event(error: KinferenceError, why: str) -> None:
    answer = await ask(Upstream(b"data: half", error, headers=EVENTS))
    assert answer.is_finished
    head, last = answer.sent.split(b"\n\ndata: ")
    assert head == b"data: half"
    assert json.loads(last) == {"error": {"message": why, "type": "proxy_stream_error"}}


async def test_fact53_any_other_broken_answer_is_broken_off() -> None:
    answer = await ask(Upstream(b"{", UpstreamCut("x"), headers=((b"content-type", b"application/json"),)))
    assert answer.is_aborted
    assert not answer.is_finished


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (UpstreamUnreachable("secret-host"), 503, "inference service unavailable"),
        (UpstreamTimeout("secret-host"), 503, "inference service unavailable"),
        (UpstreamCut("secret-host"), 502, "inference service error"),
    ],
)
@pytest.mark.parametrize("path", [CHAT, EMBEDDINGS])
async def test_fact56_a_failure_names_no_host(error: KinferenceError, status: int, told: str, path: str) -> None:
    assert await refusal(Upstream(error), path) == (status, told)


async def test_fact52_a_buffered_answer_that_stalls_is_unavailable() -> None:
    assert (await refusal(Upstream(b"a", UpstreamTimeout("x")), EMBEDDINGS))[0] == 503


async def test_fact55_a_buffered_answer_has_a_limit() -> None:
    exactly = Upstream(*[b"x" * (ANSWER_BYTES_MAX // 4)] * 4)
    assert len((await ask(exactly, EMBEDDINGS)).sent) == ANSWER_BYTES_MAX
    over = Upstream(*[b"x" * (ANSWER_BYTES_MAX // 4)] * 4, b"x")
    assert await refusal(over, EMBEDDINGS) == (502, "inference service error")
    assert over.is_closed


async def test_a_body_has_a_limit() -> None:
    answer = await ask(Upstream(), chunks=[b"x" * BODY_BYTES_MAX, b"x"])
    assert answer.status == 413


async def test_a_route_that_cannot_be_called_is_an_error_of_ours() -> None:
    assert (await refusal(Upstream(), routes=[replace(ROUTE, base_url="ftp://secret-host")]))[0] == 502


async def test_fact64_a_mock_answers_without_the_network() -> None:
    upstream = Upstream()
    answer = await ask(upstream, routes=[replace(ROUTE, base_url="mock://any")])
    assert answer.answered[b"x-openshell-mock"] == b"true"
    assert json.loads(answer.sent)["model"] == "m"
    assert upstream.asked == []

"""Where requests go and how they are written; what every carrier must do is in tests/conformance/http."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kinference.errors import KinferenceError, UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from kinference.ports import UpstreamAnswer, UpstreamRequest, UpstreamTimeouts
from kinference.wire.http1 import pool
from kinference.wire.http1.upstream import Http1Upstream
from kinference.wire.over import OVER
from kinference.wire.trust import Trust
from tests.unit.wire.certificates import self_signed

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Told:
    """Answers every request with OK, and keeps what it was sent."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.ended = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                self.heads.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(OK)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
            self.ended.set()


async def body_of(upstream: Http1Upstream, request: UpstreamRequest) -> bytes:
    answer = await upstream.send(request)
    body = b"".join([chunk async for chunk in answer.chunks()])
    await answer.close()
    return body


async def test_a_unix_socket_may_be_the_origin(tmp_path: Path) -> None:
    path, told = str(tmp_path / "s"), Told()
    server = await asyncio.start_unix_server(told.serve, path)
    async with Http1Upstream() as upstream:
        assert await body_of(upstream, UpstreamRequest("GET", f"unix://{path}", "/v1", ())) == b"ok"
    await told.ended.wait()
    server.close()
    assert told.heads == [b"GET /v1 HTTP/1.1\r\nhost: localhost\r\n\r\n"]


async def test_an_ipv6_origin_keeps_its_brackets() -> None:
    told = Told()
    server = await asyncio.start_server(told.serve, "::1", 0)
    port = server.sockets[0].getsockname()[1]
    async with Http1Upstream() as upstream:
        assert await body_of(upstream, UpstreamRequest("GET", f"http://[::1]:{port}", "/", ())) == b"ok"
    await told.ended.wait()
    server.close()
    assert f"host: [::1]:{port}\r\n".encode() in told.heads[0]


async def test_a_post_without_a_body_says_so() -> None:
    told = Told()
    server = await asyncio.start_server(told.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with Http1Upstream() as upstream:
        await body_of(upstream, UpstreamRequest("POST", f"http://127.0.0.1:{port}", "/", ()))
    await told.ended.wait()
    server.close()
    assert b"content-length: 0\r\n" in told.heads[0]


@pytest.mark.parametrize(
    ("target", "field"),
    [("/a b", b"x"), ("/\r\nx: y", b"x"), ("/", b"sk-key\n"), ("/", b"a\r\nsmuggled: 1")],
)
async def test_what_would_write_another_line_is_not_sent(target: str, field: bytes) -> None:
    request = UpstreamRequest("GET", "http://127.0.0.1:9", target, ((b"authorization", field),))
    async with Http1Upstream() as upstream:
        with pytest.raises(UpstreamUnreachable, match="line break"):
            await upstream.send(request)


async def test_an_address_where_nobody_is_does_not_keep_from_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    told, loop = Told(), asyncio.get_running_loop()
    server = await asyncio.start_server(told.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def two_addresses(*_asked: object, **_options: object) -> list[tuple[object, ...]]:
        return [(0, 0, 0, "", ("::1", 0)), (0, 0, 0, "", ("127.0.0.1", 0))]

    async with Http1Upstream() as upstream:
        monkeypatch.setattr(loop, "getaddrinfo", two_addresses)
        assert await body_of(upstream, UpstreamRequest("GET", f"http://two.example:{port}", "/", ())) == b"ok"
    await told.ended.wait()
    server.close()


async def test_an_authority_is_trusted_once_its_file_has_it(tmp_path: Path) -> None:
    told, (mine, trusting) = Told(), served_and_trusted(tmp_path)
    file = tmp_path / "localhost.pem"
    right = file.read_bytes()
    file.write_bytes(self_signed(tmp_path, "another").certificate.read_bytes())
    server = await asyncio.start_server(told.serve, "127.0.0.1", 0, ssl=mine)
    request = UpstreamRequest("GET", f"https://localhost:{server.sockets[0].getsockname()[1]}", "/", ())
    async with Http1Upstream(trusting) as upstream:
        with pytest.raises(UpstreamUnreachable, match="its certificate does not verify"):
            await upstream.send(request)
        file.write_bytes(right)
        assert await body_of(upstream, request) == b"ok"
    await told.ended.wait()
    server.close()


@pytest.mark.parametrize("origin", ["ftp://h:1", "http://", "h:1", "http://h:notaport"])
async def test_what_is_no_origin_is_unreachable(origin: str) -> None:
    async with Http1Upstream() as upstream:
        with pytest.raises(UpstreamUnreachable, match="is not a usable address"):
            await upstream.send(UpstreamRequest("GET", origin, "/", ()))


def served_and_trusted(folder: Path) -> tuple[ssl.SSLContext, Trust]:
    """A server's context, and a client's trust in it."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name.from_rfc4514_string("CN=localhost")
    begins = datetime.now(tz=UTC) - timedelta(days=1)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, begins, begins + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "localhost.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + certificate.public_bytes(Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return server, Trust(file)


@pytest.mark.parametrize("trusts", [True, False])
async def test_an_https_origin_is_verified(trusts: bool, tmp_path: Path) -> None:
    told, (mine, trusting) = Told(), served_and_trusted(tmp_path)
    server = await asyncio.start_server(told.serve, "127.0.0.1", 0, ssl=mine)
    port = server.sockets[0].getsockname()[1]
    request = UpstreamRequest("GET", f"https://localhost:{port}", "/", (), timeouts=UpstreamTimeouts(connect=5))
    async with Http1Upstream(trusting if trusts else None) as upstream:
        if trusts:
            assert [await body_of(upstream, request) for _ in range(2)] == [b"ok", b"ok"]
        else:
            with pytest.raises(UpstreamUnreachable, match="its certificate does not verify"):
                await upstream.send(request)
    if trusts:
        await told.ended.wait()
    server.close()


async def test_an_answer_that_is_all_here_has_arrived_and_its_connection_is_kept() -> None:
    told = Told()
    server = await asyncio.start_server(told.serve, "127.0.0.1", 0)
    request = UpstreamRequest("GET", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "/", ())
    async with Http1Upstream() as upstream:
        for _ in range(2):
            answer = await upstream.send(request)
            assert answer.arrived() == b"ok"  # head and body were one segment
            assert [chunk async for chunk in answer.chunks()] == []
            await answer.close()
            await answer.close()
        assert len(told.heads) == 2
        assert not told.ended.is_set()
    await told.ended.wait()
    server.close()


class Slow(Told):
    """Holds the end of its answer back until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK[:-1])
        await self.goes_on.wait()
        writer.write(OK[-1:])
        await super().serve(reader, writer)


async def test_an_answer_has_not_arrived_while_some_of_it_is_to_come() -> None:
    slow = Slow()
    server = await asyncio.start_server(slow.serve, "127.0.0.1", 0)
    request = UpstreamRequest("GET", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "/", ())
    async with Http1Upstream() as upstream:
        answer = await upstream.send(request)
        assert answer.arrived() is None
        slow.goes_on.set()
        assert b"".join([chunk async for chunk in answer.chunks()]) == b"ok"
        assert answer.arrived() == b""
        await answer.close()
    await slow.ended.wait()
    server.close()


class Scripted:
    """Answers each request with the next of its script; None closes the connection in its place."""

    def __init__(self, *script: bytes | None) -> None:
        self._script = [*script]
        self.requests = 0
        self.serving: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                self.requests += 1
                answer = self._script.pop(0)
                if answer is None:
                    break
                writer.write(answer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def warm(*script: bytes | None) -> AsyncIterator[tuple[Http1Upstream, UpstreamRequest, Scripted]]:
    """An upstream with a connection open, and what was sent over it once."""
    scripted = Scripted(OK, *script)
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    timeouts = UpstreamTimeouts(first_byte=0.05)
    request = UpstreamRequest("GET", f"http://127.0.0.1:{port}", "/", (), timeouts=timeouts)
    async with Http1Upstream() as upstream:
        assert await body_of(upstream, request) == b"ok"
        yield upstream, request, scripted
    server.close()
    await asyncio.wait(scripted.serving)


async def asked(upstream: Http1Upstream, request: UpstreamRequest) -> UpstreamAnswer | KinferenceError | None:
    told: asyncio.Future[UpstreamAnswer | KinferenceError | None] = asyncio.get_running_loop().create_future()
    assert upstream.ask(request, told.set_result) is not None
    return await told


async def test_without_an_open_connection_nothing_is_asked() -> None:
    async with Http1Upstream() as upstream:
        assert upstream.ask(UpstreamRequest("GET", "http://127.0.0.1:9", "/", ()), lambda _: None) is None


async def test_an_open_connection_is_asked_at_once_and_kept() -> None:
    async with warm(OK, OK) as (upstream, request, scripted):
        for _ in range(2):
            answer = await asked(upstream, request)
            assert answer is not None
            assert not isinstance(answer, KinferenceError)
            assert (answer.status, answer.arrived()) == (200, b"ok")
            assert answer.close() is OVER
        assert scripted.requests == 3


@pytest.mark.parametrize(
    ("step", "told"), [(None, type(None)), (b"HTTP/1.1 200", UpstreamTimeout), (b"nothing of HTTP", UpstreamCut)]
)
async def test_what_fails_is_told_and_its_connection_closed(step: bytes | None, told: type) -> None:
    async with warm(step) as (upstream, request, _):
        assert type(await asked(upstream, request)) is told
        assert upstream.ask(request, lambda _: None) is None


async def test_what_is_dropped_is_told_to_nobody() -> None:
    async with warm(OK, OK) as (upstream, request, scripted):
        asked = upstream.ask(request, lambda _: pytest.fail("told"))
        assert asked is not None
        asked.drop()
        assert await body_of(upstream, request) == b"ok"
        assert scripted.requests >= 2


async def test_what_cannot_be_written_leaves_no_connection_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_MAX", 3600.0)
    async with warm() as (upstream, request, scripted):
        unwritable = UpstreamRequest("POST", request.origin, "/", (), body=("no bytes" * 4096,))  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            upstream.ask(unwritable, lambda _: pytest.fail("told"))
        await asyncio.wait_for(asyncio.wait(scripted.serving), 10)

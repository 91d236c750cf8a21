"""The server of our own over real sockets: what only it does. What every carrier does is in tests/conformance/rpc."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
import uvloop
from grpc_reflection.v1alpha import reflection_pb2
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded, TrailersReceived

from kinference.wire.connections import Tally
from kinference.wire.grpc_server import GrpcServer
from kinference.wire.grpc_session import GrpcLimits
from kinference.wire.rpc import Call, RpcService
from kinference.wire.tls import ServerTls, TlsFiles
from tests.unit.wire.certificates import Pair, self_signed
from tests.unit.wire.http2.peer import framed


async def echo(call: Call) -> None:
    while (message := await call.receive()) is not None:
        await call.send(message)


ECHO = RpcService("test.Service", {"Echo": echo}, inline=True)

FRAME_HEAD_BYTES = 9


@asynccontextmanager
async def serving(tls: ServerTls | None = None, limits: GrpcLimits | None = None) -> AsyncIterator[int]:
    server = GrpcServer("127.0.0.1:0", [ECHO], limits or GrpcLimits(), tls)
    port = await server.start()
    yield port
    await server.drain(0)


def stub(channel: grpc.aio.Channel) -> grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]:
    return channel.unary_unary("/test.Service/Echo")


async def with_hyper(port: int, messages: list[bytes]) -> tuple[list[bytes], dict[bytes, bytes]]:
    """One call with the h2 library as the client: its data and its last header block."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    client = H2Connection(H2Configuration(client_side=True, header_encoding=None))
    client.initiate_connection()
    head = [(":method", "POST"), (":scheme", "http"), (":authority", "here"), (":path", "/test.Service/Echo")]
    client.send_headers(1, [*head, ("te", "trailers"), ("content-type", "application/grpc")])
    for message in messages:
        client.send_data(1, framed(message))
    client.end_stream(1)
    data, trailers, ended = b"", {}, False
    while not ended:
        writer.write(client.data_to_send())
        for event in client.receive_data(await reader.read(65_536)):
            match event:
                case DataReceived():
                    data += event.data
                    client.acknowledge_received_data(event.flow_controlled_length, 1)
                case ResponseReceived() | TrailersReceived():
                    trailers = dict(event.headers)
                case StreamEnded():
                    ended = True
                case _:
                    pass
    writer.close()
    await writer.wait_closed()
    return [data], trailers


async def test_the_h2_library_as_a_client_finds_nothing_wrong() -> None:
    async with serving() as port:
        data, trailers = await with_hyper(port, [b"one", b"", b"three"])
    assert data == [framed(b"one") + framed(b"") + framed(b"three")]
    assert trailers == {b"grpc-status": b"0"}


def test_it_runs_on_uvloop() -> None:
    async def by_hyper() -> list[bytes]:
        async with serving() as port:
            return (await with_hyper(port, [b"x" * 3_000]))[0]

    assert uvloop.run(by_hyper()) == [framed(b"x" * 3_000)]


def test_a_blocking_client_in_a_thread_is_served() -> None:
    async def run() -> list[bytes]:
        async with serving() as port:
            return await asyncio.to_thread(blocking, port)

    def blocking(port: int) -> list[bytes]:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            method: grpc.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream("/test.Service/Echo")
            return list(method(iter([b"one", bytes(500_000), b"three"])))

    assert asyncio.run(run()) == [b"one", bytes(500_000), b"three"]


async def test_what_is_no_http2_is_closed() -> None:
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nhost: here\r\n\r\n")
        async with asyncio.timeout(10):
            assert b"not an HTTP/2 client" in await reader.read()
        writer.close()
        await writer.wait_closed()


async def test_a_compressed_message_is_unimplemented() -> None:
    async with (
        serving() as port,
        grpc.aio.insecure_channel(f"127.0.0.1:{port}", compression=grpc.Compression.Gzip) as channel,
    ):
        call = stub(channel)(bytes(10_000))
        assert await call.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_reflection_is_served_in_its_first_version_too() -> None:
    async with serving() as port, grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        ask = reflection_pb2.ServerReflectionRequest(list_services="")
        method: grpc.aio.StreamStreamMultiCallable[bytes, bytes]
        method = channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
        answers = [answer async for answer in method(iter([ask.SerializeToString()]))]
    assert b"test.Service" in answers[0]


# --- TLS -----------------------------------------------------------------------------------------


def credentials(trusted: Pair, own: Pair | None = None) -> grpc.ChannelCredentials:
    chain, key = (own.certificate.read_bytes(), own.key.read_bytes()) if own else (None, None)
    return grpc.ssl_channel_credentials(trusted.certificate.read_bytes(), key, chain)


async def call_with(port: int, trusted: Pair, own: Pair | None = None) -> grpc.StatusCode:
    async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials(trusted, own)) as channel:
        return await stub(channel)(b"hi", timeout=10).code()


async def test_tls_and_the_reload_of_its_files(tmp_path: Path) -> None:
    old, new = self_signed(tmp_path, "old"), self_signed(tmp_path, "new")
    files = self_signed(tmp_path, "served")
    files.certificate.write_bytes(old.certificate.read_bytes())
    files.key.write_bytes(old.key.read_bytes())
    tls = ServerTls(TlsFiles(files.certificate, files.key))
    async with serving(tls) as port:
        assert await call_with(port, old) is grpc.StatusCode.OK
        files.certificate.write_bytes(new.certificate.read_bytes())
        files.key.write_bytes(new.key.read_bytes())
        tls.reload()
        assert await call_with(port, new) is grpc.StatusCode.OK


@pytest.mark.parametrize("is_tls", [False, True])
async def test_no_connection_outlives_the_server(tmp_path: Path, is_tls: bool) -> None:
    pair, tally = self_signed(tmp_path, "server"), Tally()
    context = ssl.create_default_context(cafile=str(pair.certificate))
    context.set_alpn_protocols(["h2"])
    tls = ServerTls(TlsFiles(pair.certificate, pair.key)) if is_tls else None
    async with asyncio.timeout(20):
        async with serving(tls, GrpcLimits(tally=tally)) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context if is_tls else None)
            await reader.readexactly(FRAME_HEAD_BYTES)
            assert tally.open == 1
        assert tally.open == 0
    writer.close()


async def test_mutual_tls_serves_known_callers_only(tmp_path: Path) -> None:
    server, caller, stranger = (self_signed(tmp_path, name) for name in ("server", "caller", "stranger"))
    tls = ServerTls(TlsFiles(server.certificate, server.key, client_authorities=caller.certificate))
    async with serving(tls) as port:
        assert await call_with(port, server, caller) is grpc.StatusCode.OK
        assert await call_with(port, server, stranger) is grpc.StatusCode.UNAVAILABLE
        assert await call_with(port, server) is grpc.StatusCode.UNAVAILABLE


async def test_a_caller_that_never_shakes_hands_is_not_waited_for(tmp_path: Path) -> None:
    pair = self_signed(tmp_path, "server")
    limits = GrpcLimits(handshake_timeout=0.1)
    async with serving(ServerTls(TlsFiles(pair.certificate, pair.key)), limits) as port, asyncio.timeout(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        writer.close()


@pytest.mark.parametrize("protocols", [["http/1.1"], []])
async def test_tls_without_http2_in_its_hello_is_closed(tmp_path: Path, protocols: list[str]) -> None:
    pair = self_signed(tmp_path, "server")
    context = ssl.create_default_context(cafile=str(pair.certificate))
    if protocols:
        context.set_alpn_protocols(protocols)
    async with serving(ServerTls(TlsFiles(pair.certificate, pair.key))) as port:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            received = await reader.read()
            writer.close()
        except (ssl.SSLError, ConnectionResetError):
            received = b""
    assert received == b""

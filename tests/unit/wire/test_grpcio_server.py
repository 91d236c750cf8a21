"""What only the grpcio carrier does. What every carrier does is in tests/conformance/rpc."""

import asyncio

import grpc
import pytest

from kinference.errors import ClientGone
from kinference.wire.grpcio_server import GrpcioServer
from kinference.wire.rpc import Call, RpcError, RpcService, Status


async def test_a_port_in_use_is_an_error_that_names_the_address() -> None:
    server = GrpcioServer("127.0.0.1:0", [])
    port = await server.start()
    with pytest.raises(OSError, match=rf"cannot listen on 127\.0\.0\.1:{port}: .* in use"):
        await GrpcioServer(f"127.0.0.1:{port}", []).start()
    await server.drain(0)


async def test_a_refusal_after_the_false_end_of_a_large_chunk_does_not_hide_its_status() -> None:
    async def insist(call: Call) -> None:
        while await call.receive() is not None:
            pass
        raise RpcError(Status.INVALID_ARGUMENT, "too few bytes")

    server = GrpcioServer("127.0.0.1:0", [RpcService("test.Service", {"Insist": insist})])
    port = await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        method: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = channel.stream_unary("/test.Service/Insist")
        assert await method(iter([bytes(1_048_581)])).code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    await server.drain(0)


async def test_a_send_that_waits_for_its_reader_can_be_cut() -> None:
    seen = asyncio.Event()

    async def flood(call: Call) -> None:
        asyncio.get_running_loop().call_later(0.2, call.cut)
        try:
            while True:
                await call.send(bytes(1_000_000))
        except ClientGone:
            seen.set()
            with pytest.raises(ClientGone):
                await call.send(b"after")
            raise

    server = GrpcioServer("127.0.0.1:0", [RpcService("test.Service", {"Flood": flood})])
    port = await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        method: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream("/test.Service/Flood")
        call = method(b"")
        async with asyncio.timeout(10):
            await seen.wait()
        call.cancel()
    await server.drain(0)


async def test_a_receive_waits_no_longer_than_asked() -> None:
    async def impatient(call: Call) -> None:
        with pytest.raises(TimeoutError):
            await call.receive(timeout=0.02)
        raise RpcError(Status.DEADLINE_EXCEEDED, "nothing came")

    server = GrpcioServer("127.0.0.1:0", [RpcService("test.Service", {"Impatient": impatient})])
    port = await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        method: grpc.aio.StreamUnaryMultiCallable[bytes, bytes] = channel.stream_unary("/test.Service/Impatient")
        assert await method().code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await server.drain(0)

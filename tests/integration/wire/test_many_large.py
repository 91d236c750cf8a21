"""More large messages at once on one connection than its window holds."""

import asyncio

import grpc

from kinference.ids import StreamId
from kinference.ports import PickArguments
from kinference.wire.proto import picker_pb2 as pb
from tests.conformance.serving import ROOMY, served

PUSHES, SIZE = 80, 1_000_000


async def test_as_many_large_pushes_at_once_as_a_caller_likes_all_complete() -> None:
    message = pb.BodyChunk(chunk=bytes(SIZE)).SerializeToString()
    async with served(ROOMY, "own") as server:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.target.port}") as channel:
            method: grpc.aio.StreamUnaryMultiCallable[bytes, bytes]
            method = channel.stream_unary("/kinference.v1.Picker/PushBody")
            async with asyncio.timeout(60):
                replies = await asyncio.gather(*(method(iter([message])) for _ in range(PUSHES)))
        assert server.desk.buffered_bytes == PUSHES * SIZE
        for reply in map(pb.PushBodyResponse.FromString, replies):
            assert reply.total_bytes == SIZE
            server.desk.pick(
                PickArguments(StreamId(reply.stream_id), "acme"), lambda: None
            )  # no request, so it is consumed
        await server.wait_until_idle()

"""The Picker service without a picker on the gRPC servers of others: `rival_picker.py grpclib|connectrpc`.

Runs in an environment that has these libraries, with this project's `src` on its path for the messages. Does what
`Carried` of `bench/picker.py` does on ours: bodies are kept, nothing is decided. Prints its port.
"""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator

import uvloop

from kinference.wire.proto import picker_pb2 as pb

SERVICE = "kinference.v1.Picker"


class Bodies:
    """What every server does, whatever carries it."""

    def __init__(self) -> None:
        self.bodies: dict[int, list[bytes]] = {}
        self.count = 0

    def keep(self, body: list[bytes]) -> pb.PushBodyResponse:
        self.count += 1
        self.bodies[self.count] = body
        return pb.PushBodyResponse(stream_id=self.count, total_bytes=sum(map(len, body)))

    def pick(self, request: pb.PickRequest) -> pb.PickResponse:
        response = pb.PickResponse(response_id=request.body_stream_id, requested_model="llama")
        response.outcome = 1  # type: ignore[assignment] # the stubs type an enum's numbers by their own names
        response.local.endpoint = "10.0.0.1:8000"
        return response

    def pull(self, request: pb.PullBodyRequest) -> list[pb.BodyChunk]:
        return [pb.BodyChunk(chunk=chunk) for chunk in self.bodies.pop(request.response_id)]


METHODS = {
    "PushBody": (pb.BodyChunk, pb.PushBodyResponse),
    "Pick": (pb.PickRequest, pb.PickResponse),
    "PullBody": (pb.PullBodyRequest, pb.BodyChunk),
    "ReportFirstToken": (pb.ReportFirstTokenRequest, pb.ReportFirstTokenResponse),
    "ReportFinalToken": (pb.ReportFinalTokenRequest, pb.ReportFinalTokenResponse),
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def serve_grpclib(port: int) -> None:
    from grpclib.const import Cardinality, Handler  # type: ignore[import-not-found] # noqa: PLC0415 - only one of the two is there
    from grpclib.server import Server, Stream  # type: ignore[import-not-found] # noqa: PLC0415 - as above

    bodies = Bodies()

    async def push(stream: Stream) -> None:
        await stream.send_message(bodies.keep([message.chunk async for message in stream]))

    async def pick(stream: Stream) -> None:
        await stream.send_message(bodies.pick(await stream.recv_message()))

    async def pull(stream: Stream) -> None:
        for chunk in bodies.pull(await stream.recv_message()):
            await stream.send_message(chunk)

    async def first(stream: Stream) -> None:
        await stream.recv_message()
        await stream.send_message(pb.ReportFirstTokenResponse(acknowledged=True))

    async def final(stream: Stream) -> None:
        await stream.recv_message()
        await stream.send_message(pb.ReportFinalTokenResponse(acknowledged=True))

    kinds = (
        Cardinality.STREAM_UNARY,
        Cardinality.UNARY_UNARY,
        Cardinality.UNARY_STREAM,
        *[Cardinality.UNARY_UNARY] * 2,
    )
    handlers = zip((push, pick, pull, first, final), kinds, METHODS.items(), strict=True)

    class Service:
        def __mapping__(self) -> dict[str, Handler]:
            return {f"/{SERVICE}/{name}": Handler(function, kind, *types) for function, kind, (name, types) in handlers}

    server = Server([Service()])
    await server.start("127.0.0.1", port)
    print(port, flush=True)
    await server.wait_closed()


async def serve_connectrpc(port: int) -> None:
    from connectrpc.compat import google_protobuf_codecs  # type: ignore[import-not-found] # noqa: PLC0415 - only one of the two is there
    from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType  # type: ignore[import-not-found] # noqa: PLC0415 - as above
    from connectrpc.server import ConnectASGIApplication, Endpoint  # type: ignore[import-not-found] # noqa: PLC0415 - as above
    from h2corn import Config, Server  # type: ignore[import-not-found] # noqa: PLC0415 - as above

    bodies = Bodies()

    async def push(messages: AsyncIterator[pb.BodyChunk], _context: object) -> pb.PushBodyResponse:
        return bodies.keep([message.chunk async for message in messages])

    async def pick(request: pb.PickRequest, _context: object) -> pb.PickResponse:
        return bodies.pick(request)

    async def pull(request: pb.PullBodyRequest, _context: object) -> AsyncIterator[pb.BodyChunk]:
        for chunk in bodies.pull(request):
            yield chunk

    async def first(_request: object, _context: object) -> pb.ReportFirstTokenResponse:
        return pb.ReportFirstTokenResponse(acknowledged=True)

    async def final(_request: object, _context: object) -> pb.ReportFinalTokenResponse:
        return pb.ReportFinalTokenResponse(acknowledged=True)

    make = (Endpoint.client_stream, Endpoint.unary, Endpoint.server_stream, Endpoint.unary, Endpoint.unary)
    kinds = (StreamType.CLIENT_STREAM, StreamType.UNARY, StreamType.SERVER_STREAM, StreamType.UNARY, StreamType.UNARY)
    endpoints = {}
    for (name, (asked, given)), function, made, kind in zip(
        METHODS.items(), (push, pick, pull, first, final), make, kinds, strict=True
    ):
        method = MethodInfo(
            name=name,
            service_name=SERVICE,
            input=asked,
            output=given,
            idempotency_level=IdempotencyLevel.UNKNOWN,
            stream_type=kind,
        )
        endpoints[f"/{SERVICE}/{name}"] = made(method=method, function=function)

    class Application(ConnectASGIApplication):  # type: ignore[misc] # its package is not there where types are checked
        path = f"/{SERVICE}"

    application = Application(
        service=None, endpoints=lambda _service: endpoints, compressions=(), codecs=google_protobuf_codecs()
    )
    server = Server(application, Config(bind=(f"127.0.0.1:{port}",), grpc=True))
    serving = asyncio.ensure_future(server.serve())
    await asyncio.sleep(0.5)
    print(port, flush=True)
    await serving


if __name__ == "__main__":
    uvloop.run({"grpclib": serve_grpclib, "connectrpc": serve_connectrpc}[sys.argv[1]](free_port()))

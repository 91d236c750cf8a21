"""The gRPC health service (`grpc.health.v1.Health`): which services are served, asked once or watched."""

import asyncio
from collections.abc import Iterable

from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from kinference.wire.rpc import Call, RpcError, RpcService, Status

SERVICE = "grpc.health.v1.Health"
_Answer = health_pb2.HealthCheckResponse


class Health:
    """Every service named, and "" for the server as a whole, is served until `stop`."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset((*names, ""))
        self._serves = True
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """From now on nothing is served, as far as this service tells."""
        self._serves = False
        self._stopped.set()

    def service(self) -> RpcService:
        return RpcService(SERVICE, {"Check": self._check, "Watch": self._watch})

    async def _check(self, call: Call) -> None:
        name = await _asked(call)
        if name not in self._names:
            raise RpcError(Status.NOT_FOUND, "no such service is served here")
        await call.send(self._answer(name))

    async def _watch(self, call: Call) -> None:
        """Answers now and at each change, of which there is one."""
        name = await _asked(call)
        await call.send(self._answer(name))
        if self._serves:
            await self._stopped.wait()
            await call.send(self._answer(name))
        await asyncio.Event().wait()  # a watch ends with its caller or its server

    def _answer(self, name: str) -> bytes:
        if name not in self._names:
            status = _Answer.SERVICE_UNKNOWN
        else:
            status = _Answer.SERVING if self._serves else _Answer.NOT_SERVING
        message: bytes = _Answer(status=status).SerializeToString()
        return message


async def _asked(call: Call) -> str:
    try:
        name: str = health_pb2.HealthCheckRequest.FromString(await call.receive() or b"").service
    except DecodeError:
        raise RpcError(Status.INVALID_ARGUMENT, "the message is not a HealthCheckRequest") from None
    return name

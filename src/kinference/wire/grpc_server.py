"""The gRPC carrier of our own: serves the services of `wire.rpc` with health and reflection beside them."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from kinference.ids import Seconds
from kinference.wire.burst import Burst, Handshakes
from kinference.wire.connections import LAST_WORDS
from kinference.wire.grpc_call import Method
from kinference.wire.grpc_health import SERVICE as HEALTH
from kinference.wire.grpc_health import Health
from kinference.wire.grpc_reflection import Reflection
from kinference.wire.grpc_session import GrpcLimits, GrpcSession, Host
from kinference.wire.rpc import RpcService
from kinference.wire.tls import ServerTls

BACKLOG: Final = 1024


class GrpcServer:
    """Listens on one address. `start` binds, `drain` ends; between them handlers run."""

    def __init__(
        self,
        address: str,
        services: Sequence[RpcService],
        limits: GrpcLimits | None = None,
        tls: ServerTls | None = None,
    ) -> None:
        self._address, self._tls = address, tls
        names = [service.name for service in services]
        self._health = Health(names)
        beside = [self._health.service(), *Reflection((*names, HEALTH)).services()]
        methods = {
            f"/{service.name}/{name}": Method(
                service, f"{service.name}/{name}", handler, service in services, service.replies.get(name)
            )
            for service in (*services, *beside)
            for name, handler in service.methods.items()
        }
        self._host = Host(methods, limits or GrpcLimits())
        self._listener: asyncio.Server | None = None
        self._burst: Burst | None = None

    async def start(self) -> int:
        """Bind and serve. Returns the port, which is the system's choice where the address says 0."""
        host, _, port = self._address.rpartition(":")
        loop = asyncio.get_running_loop()
        burst = self._burst = Burst(lambda: GrpcSession(self._host), self._handshakes())
        self._listener = await loop.create_server(
            burst, host.strip("[]") or None, int(port), backlog=BACKLOG, start_serving=burst.lets_loop_accept
        )
        burst.attend(self._listener, BACKLOG)
        bound: int = self._listener.sockets[0].getsockname()[1]
        return bound

    def _handshakes(self) -> Handshakes | None:
        limits = self._host.limits
        if self._tls is None:
            return None
        tally = self._host.sessions.tally
        return Handshakes(
            self._tls, limits.handshake_timeout, limits.connections_max, limits.connections_per_peer_max, tally
        )

    async def stop_advertising(self) -> None:
        """Answer health checks with NOT_SERVING and go on serving, so that requests under way can finish."""
        self._health.stop()

    async def drain(self, timeout: Seconds) -> None:
        """Refuse new calls, give the running ones `timeout` to end, cancel what is left, close the port."""
        await self.stop_advertising()
        self._host.is_draining = True
        for session in tuple(self._host.sessions):
            session.announce_end()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._host.idle.wait()
        if self._listener is not None:
            self._listener.close()
        if self._burst is not None:
            self._burst.close()
            self._burst.give_up()
        self._host.is_closed = True  # a connection may still come that the system had accepted before
        for session in tuple(self._host.sessions):
            session.close()
        await self._host.idle.wait()
        await self._host.sessions.wait_empty(LAST_WORDS)
        for session in tuple(self._host.sessions):
            session.abort()

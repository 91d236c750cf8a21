"""Follows the control plane's bundle: every few seconds, the last good one kept while it cannot be had."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import grpc

from kinference.control.service import SERVICE
from kinference.ids import Seconds
from kinference.sandbox.routes import RouteTable, SandboxRoute
from kinference.wire.proto import control_pb2 as pb
from kinference.wire.proto import inference_pb2

INTERVAL: Seconds = 5.0
DEADLINE: Seconds = 10.0

_log = logging.getLogger(__name__)


class NoBundle(Exception):
    """The bundle could not be had; the message says why and holds no secret."""


@dataclass(frozen=True, slots=True)
class FetchedBundle:
    """What one fetch brought."""

    revision: str
    routes: tuple[SandboxRoute, ...]


class BundleClient:
    """Fetches bundles over one channel, with a token where there is one."""

    def __init__(self, channel: grpc.aio.Channel, token: Callable[[], str]) -> None:
        """`token` is asked before each fetch: a file may have been renewed."""
        self._token = token
        self.use(channel)

    def use(self, channel: grpc.aio.Channel) -> None:
        """From now on fetch over this one."""
        self._call: grpc.aio.UnaryUnaryMultiCallable[
            inference_pb2.GetInferenceBundleRequest, pb.GetInferenceBundleResponse
        ] = channel.unary_unary(
            f"/{SERVICE}/GetInferenceBundle",
            request_serializer=inference_pb2.GetInferenceBundleRequest.SerializeToString,
            response_deserializer=pb.GetInferenceBundleResponse.FromString,
        )

    async def fetch(self) -> FetchedBundle:
        """Raises NoBundle."""
        token = self._token()
        if re.fullmatch(r"[!-~]*", token) is None:
            raise NoBundle("the token holds characters that no token has; is its file the right one?")
        metadata = (("authorization", f"Bearer {token}"),) if token else ()
        try:
            bundle = await self._call(inference_pb2.GetInferenceBundleRequest(), metadata=metadata, timeout=DEADLINE)
        except grpc.aio.AioRpcError as error:
            raise NoBundle(f"{error.code().name}: {(error.details() or '')[:200]}") from None
        return FetchedBundle(bundle.revision, tuple(_route(route) for route in bundle.routes))


class Poller:
    """Keeps a table as the newest bundle has it."""

    def __init__(self, fetch: Callable[[], Awaitable[FetchedBundle]], table: RouteTable, interval: Seconds) -> None:
        self._fetch, self._table, self._interval = fetch, table, interval
        self._revision: str | None = None
        self._trouble = ""

    async def poll(self) -> None:
        """Fetch once. A failure is logged when it is new, and changes nothing."""
        try:
            bundle = await self._fetch()
        except NoBundle as error:
            if str(error) != self._trouble:
                _log.warning("the bundle cannot be fetched, the last routes stay in use: %s", error)
            self._trouble = str(error)
            return
        self._trouble = ""
        if bundle.revision != self._revision:
            self._revision = bundle.revision
            self._table.replace(bundle.routes)
            _log.info("routes taken over", extra={"routes": _named(bundle.routes)})

    async def run(self) -> None:
        """Poll for ever."""
        while True:
            await self.poll()
            await asyncio.sleep(self._interval)


def interval_of(text: str | None) -> Seconds:
    """The seconds between two fetches; what is no number above 0 means the default."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) < 7):  # noqa: PLR2004 - digits that bound it
        return INTERVAL
    return float(text) or INTERVAL


def _route(route: pb.ResolvedRoute) -> SandboxRoute:
    return SandboxRoute(
        name=route.name,
        base_url=route.base_url,
        protocols=tuple(route.protocols),
        api_key=route.api_key,
        model_id=route.model_id,
        provider_type=route.provider_type,
        timeout_secs=route.timeout_secs,
        model_in_path=route.model_in_path,
        path_override=route.request_path_override if route.HasField("request_path_override") else None,
    )


def _named(routes: Sequence[SandboxRoute]) -> str:
    return ",".join(f"{route.name}={route.model_id}" for route in routes)

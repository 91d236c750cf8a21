"""Which planes a process serves, and the way to those that it does not."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path

import grpc

from kinference.config.schema import Peer, Planes
from kinference.runtime.channels import CHANNEL_OPTIONS, ClientFiles, FollowedChannel


class Plane(Enum):
    """A part that can run by itself."""

    PICKER = "picker"
    CONTROL = "control"
    GATEWAY = "gateway"


ALL = frozenset(Plane)


class PeerTokens:
    """What other planes know us by, as the configuration has it now: a token may be replaced while we run."""

    def __init__(self, planes: Planes) -> None:
        self.replace(planes)

    def replace(self, planes: Planes) -> None:
        """From now on these are our tokens."""
        self._planes = planes

    def picker(self) -> str:
        return _token(self._planes.picker)

    def control(self) -> str:
        return _token(self._planes.control)


def _token(peer: Peer | None) -> str:
    return peer.token.reveal() if peer is not None and peer.token is not None else ""


@asynccontextmanager
async def channel_to(peer: Peer, path: str) -> AsyncIterator[FollowedChannel]:
    """A channel to a plane of another process. Raises ConfigError, under `path`, for files that are no use."""
    channel = FollowedChannel(*_way_to(peer, path))
    try:
        yield channel
    finally:
        await channel.close()


def _way_to(peer: Peer, path: str) -> tuple[Sequence[Path], Callable[[], grpc.aio.Channel]]:
    target = str(peer.url.address)
    if peer.url.scheme == "http":
        return (), lambda: grpc.aio.insecure_channel(target, CHANNEL_OPTIONS)
    files = ClientFiles((f"{path}.ca", peer.ca), (f"{path}.key", peer.key), (f"{path}.cert", peer.cert))
    return files.paths, lambda: grpc.aio.secure_channel(target, files.credentials(), CHANNEL_OPTIONS)

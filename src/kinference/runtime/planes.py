"""Which planes a process serves, and the way to those that it does not."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path

import grpc

from kinference.config.schema import Peer, Planes
from kinference.errors import ConfigError

CHANNEL_OPTIONS = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)
"""A peer that has vanished is noticed within seconds, while a call may last as long as a client's upload; and one that
is back is found within two: the library would have us wait for up to as many minutes."""


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
async def channel_to(peer: Peer, path: str) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to a plane of another process. Raises ConfigError, under `path`, for files that cannot be read."""
    target = str(peer.url.address)
    if peer.url.scheme == "http":
        channel = grpc.aio.insecure_channel(target, CHANNEL_OPTIONS)
    else:
        ca, key, cert = (_content(file, f"{path}.{name}") for name, file in _files(peer))
        channel = grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(ca, key, cert), CHANNEL_OPTIONS)
    async with channel:
        yield channel


def _files(peer: Peer) -> tuple[tuple[str, str | None], ...]:
    return ("ca", peer.ca), ("key", peer.key), ("cert", peer.cert)


def _content(file: str | None, path: str) -> bytes | None:
    try:
        return Path(file).read_bytes() if file is not None else None
    except OSError as error:
        raise ConfigError(
            path, f"{file} cannot be read: {error.strerror}", "check the path and its permissions"
        ) from None

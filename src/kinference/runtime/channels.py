"""Channels to other processes, made anew when a file of their credentials has changed."""

import hashlib
import logging
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc

from kinference.config.watch import POLL_SECONDS, watch_file
from kinference.errors import ConfigError
from kinference.ids import Seconds

CHANNEL_OPTIONS = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)
"""A peer that has vanished is noticed within seconds, while a call may last as long as a client's upload; and one that
is back is found within two: the library would have us wait for up to as many minutes."""

GRACE: Seconds = 60.0
"""How long the calls of a channel that was replaced may take to end."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClientFiles:
    """PEM files: the authorities of the other side (absent: the system's), and our own certificate where it asks for
    one; each with the name that its owner knows it by.
    """

    ca: tuple[str, str | None]
    key: tuple[str, str | None]
    cert: tuple[str, str | None]

    @property
    def paths(self) -> tuple[Path, ...]:
        """Those there are."""
        return tuple(Path(file) for _, file in (self.ca, self.key, self.cert) if file)

    def credentials(self) -> grpc.ChannelCredentials:
        """Raises ConfigError for files that are no use; the library would only fail to connect."""
        read = grpc.ssl_channel_credentials(*(_content(*each) for each in (self.ca, self.key, self.cert)))
        if bool(self.key[1]) != bool(self.cert[1]):
            both = f"set both of {self.key[0]} and {self.cert[0]}"
            raise ConfigError(self.cert[0], "half a certificate of our own", both)
        for (name, file), load in ((self.ca, _load_authorities), (self.cert, self._load_pair)):
            try:
                if file:
                    load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), file)
            except OSError as error:  # that of TLS is one
                fix = "name PEM files, a key without a passphrase and of the certificate beside it"
                raise ConfigError(name, f"{file} is no use: {error}", fix) from None
        return read

    def _load_pair(self, context: ssl.SSLContext, cert: str) -> None:
        context.load_cert_chain(cert, self.key[1])


class FollowedChannel:
    """A channel whose owner is told of each that replaces it."""

    def __init__(
        self, paths: Sequence[Path], opened: Callable[[], grpc.aio.Channel], poll_seconds: Seconds = POLL_SECONDS
    ) -> None:
        self._paths, self._opened, self._poll_seconds = paths, opened, poll_seconds
        self._known = self._look()
        self.channel = opened()

    async def run(self, replaced: Callable[[grpc.aio.Channel], None]) -> None:
        """Watch the files for ever, all together: a certificate and its key change one after the other."""
        if not self._paths:
            return
        async for _ in watch_file(self._paths[0], self._poll_seconds, lambda _path: self._look(), self._known):
            try:
                fresh = self._opened()
            except ConfigError as error:
                _log.error("certificates not taken over, the old ones stay: %s", error)
                continue
            before, self.channel = self.channel, fresh
            replaced(fresh)
            _log.info("certificates taken over")
            await before.close(GRACE)

    async def close(self) -> None:
        """End its calls."""
        await self.channel.close()

    def _look(self) -> bytes | None:
        try:
            return hashlib.blake2b(b"\0".join(path.read_bytes() for path in self._paths)).digest()
        except OSError:
            return None


def _load_authorities(context: ssl.SSLContext, file: str) -> None:
    context.load_verify_locations(file)


def _content(name: str, file: str | None) -> bytes | None:
    try:
        return Path(file).read_bytes() if file else None
    except OSError as error:
        raise ConfigError(
            name, f"{file} cannot be read: {error.strerror}", "check the path and its permissions"
        ) from None

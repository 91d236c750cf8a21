"""The certificates of all ports, read again when one of their files changes."""

import hashlib
import logging
from pathlib import Path

from kinference.config.schema import Config, Tls
from kinference.config.watch import POLL_SECONDS, watch_file
from kinference.errors import ConfigError
from kinference.ids import Seconds
from kinference.runtime.wires import Wire
from kinference.wire.tls import GRPC, HTTP, ServerTls, TlsFiles

_log = logging.getLogger(__name__)


class Certificates:
    """TLS for the HTTP ports and for the picker's. Raises OSError when the files are no use."""

    def __init__(self, tls: Tls, poll_seconds: Seconds = POLL_SECONDS) -> None:
        authorities = None if tls.client_ca is None else Path(tls.client_ca)
        files = TlsFiles(Path(tls.cert), Path(tls.key), authorities)
        self._paths = tuple(path for path in (files.certificate, files.key, authorities) if path is not None)
        self._poll_seconds = poll_seconds
        self._loaded = self._fingerprint(files.certificate)
        self.http, self.grpc = ServerTls(files, HTTP), ServerTls(files, GRPC)

    async def run(self) -> None:
        """Watch the files, all together: a certificate and its key change one after the other."""
        async for _ in watch_file(self._paths[0], self._poll_seconds, self._fingerprint, self._loaded):
            try:
                for each in (self.http, self.grpc):
                    each.reload()
            except OSError as error:  # that of TLS is one
                _log.error("certificates not taken over, the old ones stay: %s", error)
            else:
                _log.info("certificates taken over")

    def _fingerprint(self, _path: Path) -> bytes | None:
        try:
            return hashlib.blake2b(b"\0".join(path.read_bytes() for path in self._paths)).digest()
        except OSError:
            return None


def certificates(config: Config, wire: Wire) -> Certificates | None:
    """Those that are configured. Raises ConfigError where they cannot be had."""
    tls = config.listen.tls
    if tls is None:
        return None
    if wire is not Wire.OWN:
        raise ConfigError("listen.tls", "the wire of the libraries serves no TLS", "pass --wire own, or leave tls out")
    try:
        return Certificates(tls)
    except OSError as error:
        fix = "name PEM files: a chain, its key without a passphrase, and for client_ca the authorities of callers"
        raise ConfigError("listen.tls", f"the files are no use: {error}", fix) from None

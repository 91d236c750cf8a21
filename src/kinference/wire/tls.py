"""TLS of a server that speaks HTTP/2 alone, with certificates that can be replaced while it runs."""

import ssl
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: our chain and its key, and for mutual TLS the authorities of our callers."""

    certificate: Path
    key: Path
    client_authorities: Path | None = None


class ServerTls:
    """A context for `create_server`. Raises OSError or ssl.SSLError when the files are no use."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["h2"])
        self.context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        if files.client_authorities is not None:
            self.context.verify_mode = ssl.CERT_REQUIRED
        self.reload()

    def reload(self) -> None:
        """Read the files again: connections made from now on get the new certificate. A bad file changes nothing."""
        trial = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        for context in (trial, self.context):
            context.load_cert_chain(self._files.certificate, self._files.key)
            if self._files.client_authorities is not None:
                context.load_verify_locations(self._files.client_authorities)

"""TLS of our servers, with certificates and authorities that can be replaced while they run."""

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path

GRPC = ("h2",)
HTTP = ("h2", "http/1.1")
"""What a port speaks, by the names of ALPN."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: our chain and its key, and for mutual TLS the authorities of our callers."""

    certificate: Path
    key: Path
    client_authorities: Path | None = None


def peer_names(transport: asyncio.BaseTransport) -> tuple[str, ...]:
    """The names in the certificate of a peer that was verified: its URIs (SPIFFE's), hosts, then its common name."""
    tls = transport.get_extra_info("ssl_object")
    shown = tls.getpeercert() if tls is not None else None
    if not shown:
        return ()
    others = [(kind, name) for kind, name in shown.get("subjectAltName", ()) if kind in ("URI", "DNS")]
    named = [name for wanted in ("URI", "DNS") for kind, name in others if kind == wanted]
    common = [value for part in shown.get("subject", ()) for key, value in part if key == "commonName"]
    return (*named, *common)


class ServerTls:
    """A context for `create_server`. Raises OSError or ssl.SSLError when the files are no use."""

    def __init__(self, files: TlsFiles, protocols: tuple[str, ...] = GRPC) -> None:
        self._files, self._protocols = files, protocols
        self.context = self._current = self._read()
        self.context.sni_callback = self._choose

    def reload(self) -> None:
        """Read the files again: handshakes that begin from now on know nothing of the old ones. A bad file changes
        nothing, and raises as above.
        """
        self._current = self._read()

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        """Called amid every handshake, also where the client names no server."""
        connection.context = self._current

    def _read(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(list(self._protocols))
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        context.load_cert_chain(self._files.certificate, self._files.key)
        if self._files.client_authorities is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self._files.client_authorities)
            context.options |= ssl.OP_NO_TICKET  # a caller that comes again is looked at again
            context.num_tickets = 0
        return context

"""The proxy that programs reach `inference.local` through: CONNECT, then TLS that ends here, then HTTP.

What is inside the tunnel is handed, decrypted, to the HTTP server of this process over a socket in a private folder.
"""

import asyncio
import logging
import ssl
from contextlib import suppress
from pathlib import Path

from kinference.ids import Seconds
from kinference.sandbox.authority import HOST
from kinference.wire.patience import Patience

HEAD_BYTES_MAX = 16 * 1024
HEAD_PATIENCE: Seconds = 20.0
PIECE_BYTES = 64 * 1024

_ESTABLISHED = b"HTTP/1.1 200 Connection Established\r\n\r\n"
_REFUSED_BODY = b'{"error":"connection not allowed by policy"}\n'
_REFUSED = (
    b"HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(_REFUSED_BODY), _REFUSED_BODY)
)

_log = logging.getLogger(__name__)


class Tunnels:
    """Serves CONNECT for the one host; every other is refused."""

    def __init__(self, context: ssl.SSLContext, http_socket: Path) -> None:
        self._context, self._http_socket = context, http_socket
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the bound port. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=HEAD_BYTES_MAX)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    def close(self) -> None:
        """Take no new connection."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with Patience(HEAD_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                if not is_ours(head):
                    writer.write(_REFUSED)
                    await writer.drain()
                    return
                writer.write(_ESTABLISHED)
                await writer.drain()
                await writer.start_tls(self._context)
            await self._splice(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            _log.debug("a tunnel ended: %s", type(error).__name__)
        finally:
            writer.close()
            with suppress(OSError, TimeoutError):
                await writer.wait_closed()

    async def _splice(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_unix_connection(self._http_socket)
        try:
            async with asyncio.TaskGroup() as group:
                inward = group.create_task(_pump(reader, inner_writer))
                await _pump(inner_reader, writer)
                inward.cancel()  # the answering side has closed: nothing that still comes in is of use
        finally:
            inner_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Everything from one side to the other, no faster than it is taken, and then the end."""
    with suppress(OSError):
        while piece := await reader.read(PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
    writer.close()


def is_ours(head: bytes) -> bool:
    """Whether a request's head asks for a tunnel to the one host, in any case, at the port of HTTPS."""
    method, _, rest = head.partition(b" ")
    target = rest.partition(b" ")[0].lower()
    return method.upper() == b"CONNECT" and target == f"{HOST}:443".encode()

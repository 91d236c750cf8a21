"""A connection to a destination over a fake transport, for what is tested without a socket."""

import asyncio

from kinference.wire.http1.deadlines import Deadlines
from kinference.wire.http1.link import Link
from kinference.wire.turn import Turn

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"


class FakeTransport:
    def __init__(self) -> None:
        self.written = b""
        self.unsent = 0
        self.is_reading = True
        self.is_aborted = False
        self.aborted = asyncio.Event()

    def write(self, piece: bytes) -> None:
        self.written += piece

    def writelines(self, pieces: list[bytes]) -> None:
        self.written += b"".join(pieces)

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.is_aborted

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def abort(self) -> None:
        self.is_aborted = True
        self.aborted.set()


def opened(origin: str = "http://a:1", turn: Turn | None = None) -> tuple[Link, FakeTransport]:
    """One that was never asked anything."""
    link, transport = Link(origin, Deadlines(asyncio.get_running_loop()), turn or Turn()), FakeTransport()
    link.connection_made(transport)  # type: ignore[arg-type] # all of a transport that is used
    return link, transport

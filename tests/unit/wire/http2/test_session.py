"""What a session does for its connection, over a transport that is a list."""

import asyncio

from kinference.wire.http2 import frames
from kinference.wire.http2.events import RequestReceived
from kinference.wire.http2.frames import FrameType
from kinference.wire.http2.requests import Request
from kinference.wire.http2.session import Http2Session, SessionLimits
from tests.unit.wire.http2.peer import HELLO, Talk, same, split


class ListTransport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = asyncio.Event()
        self.aborted = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.closed.set()

    def abort(self) -> None:
        self.aborted.set()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def kinds(self) -> list[int]:
        written, self.written = self.written, b""
        return [kind for kind, _, _, _ in split(written)]


class Counting(Http2Session[Request]):
    """Notes what it is told."""

    def __init__(self, limits: SessionLimits, *, admits: bool = True) -> None:
        super().__init__(same, limits)
        self.admits, self.requests, self.begun, self.ended = admits, 0, 0, 0
        self._actions[RequestReceived] = self._on_request

    def _on_request(self, _event: RequestReceived[Request]) -> None:
        self.requests += 1

    def _admits(self, transport: asyncio.Transport) -> bool:
        return self.admits

    def _begin_streams(self) -> None:
        self.begun = self.requests

    def _end_streams(self) -> None:
        self.ended += 1

    def close(self) -> None:
        self._close()


def connected(limits: SessionLimits | None = None, *, admits: bool = True) -> tuple[Counting, ListTransport]:
    session, transport = Counting(limits or SessionLimits(), admits=admits), ListTransport()
    session.connection_made(transport)
    return session, transport


async def test_streams_begin_once_all_frames_of_a_read_are_known() -> None:
    session, transport = connected()
    talk = Talk()
    session.data_received(HELLO + talk.request(1) + talk.request(3))
    assert session.begun == 2
    assert transport.kinds() == [FrameType.SETTINGS, FrameType.WINDOW_UPDATE, FrameType.SETTINGS]
    session.connection_lost(None)
    assert session.ended == 1


async def test_a_connection_that_is_not_admitted_is_broken_off_unheard() -> None:
    _, transport = connected(admits=False)
    assert transport.aborted.is_set()
    assert not transport.written


async def test_a_peer_that_is_no_http2_client_is_told_and_let_go() -> None:
    session, transport = connected()
    session.data_received(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
    assert transport.kinds()[-1] == FrameType.GOAWAY
    assert transport.closed.is_set()


async def test_nothing_is_written_while_the_transport_is_full() -> None:
    session, transport = connected()
    session.data_received(HELLO)
    transport.kinds()
    session.pause_writing()
    session.data_received(frames.frame(FrameType.PING, 0, 0, b"12345678"))
    assert transport.kinds() == []
    session.resume_writing()
    assert transport.kinds() == [FrameType.PING]


async def test_one_that_says_nothing_is_broken_off() -> None:
    _, transport = connected(SessionLimits(handshake_timeout=0.01))
    await transport.aborted.wait()


async def test_a_silent_peer_is_asked_and_then_broken_off() -> None:
    session, transport = connected(SessionLimits(handshake_timeout=0.02, keepalive=0.02))
    session.data_received(HELLO)
    transport.kinds()
    await transport.aborted.wait()
    assert transport.kinds() == [FrameType.PING]


async def test_the_end_is_announced_before_it_comes() -> None:
    session, transport = connected()
    session.data_received(HELLO)
    session.announce_end()
    await asyncio.sleep(0)
    session.close()
    assert transport.kinds()[-2:] == [FrameType.GOAWAY, FrameType.GOAWAY]
    assert transport.closed.is_set()

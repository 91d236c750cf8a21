"""What a session does for its connection, over a transport that is a list."""

import asyncio

from kinference.wire.http2 import frames
from kinference.wire.http2.events import DataReceived, RequestReceived
from kinference.wire.http2.frames import FrameType
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.http2.requests import Request
from kinference.wire.http2.session import Http2Session, SessionLimits
from kinference.wire.turn import Turn
from kinference.wire.untaken import Untaken
from tests.unit.wire.http2.peer import HELLO, Talk, data, same, split


class ListTransport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = Turn()
        self.written = b""
        self.closed = asyncio.Event()
        self.aborted = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def is_closing(self) -> bool:
        return self.closed.is_set() or self.aborted.is_set()

    def close(self) -> None:
        self.closed.set()

    def abort(self) -> None:
        self.aborted.set()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def kinds(self) -> list[int]:
        """Since the last look, this turn of the event loop included."""
        self.turn.flush()
        written, self.written = self.written, b""
        return [kind for kind, _, _, _ in split(written)]


class Counting(Http2Session[Request]):
    """Notes what it is told."""

    def __init__(self, limits: SessionLimits, turn: Turn, *, admits: bool = True) -> None:
        super().__init__(same, limits, turn)
        self.admits, self.requests, self.begun, self.ended = admits, 0, 0, 0
        self.is_awaited = False
        self._actions[RequestReceived] = self._on_request
        self._actions[DataReceived] = lambda _event: None

    def _on_request(self, _event: RequestReceived[Request]) -> None:
        self.requests += 1

    def _admits(self, transport: asyncio.Transport) -> bool:
        return self.admits

    def _begin_streams(self) -> None:
        self.begun = self.requests

    def _is_awaited(self) -> bool:
        return self.is_awaited

    def _end_streams(self) -> None:
        self.ended += 1

    def close(self) -> None:
        self._close()


def connected(limits: SessionLimits | None = None, *, admits: bool = True) -> tuple[Counting, ListTransport]:
    transport = ListTransport()
    session = Counting(limits or SessionLimits(), transport.turn, admits=admits)
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


def short_of_room() -> tuple[Counting, ListTransport, Untaken]:
    """A session whose peer may have 100,000 bytes on their way, and others who hold more than all may."""
    account = Untaken(0)
    account.held = 1
    session, transport = connected(SessionLimits(http2=Http2Limits(connection_window=100_000, account=account)))
    session.data_received(HELLO + Talk().request(1))
    account.refuse_above = 2**30
    transport.kinds()
    return session, transport, account


async def test_while_room_is_short_the_window_stays_and_opens_when_there_is_room_again() -> None:
    session, transport, account = short_of_room()
    session.data_received(data(1, bytes(50_000)))
    assert transport.kinds() == []
    account.give_back(1)
    await asyncio.sleep(0)
    assert transport.kinds() == [], "its own bytes are untaken still"
    session._answers.consume(1, 50_000)
    await asyncio.sleep(0)
    assert FrameType.WINDOW_UPDATE in transport.kinds()


async def test_a_handler_that_waits_for_bytes_keeps_the_window_open() -> None:
    session, transport, _ = short_of_room()
    session.is_awaited = True
    session.data_received(data(1, bytes(50_000)))
    assert transport.kinds() == [FrameType.WINDOW_UPDATE]


async def test_a_handler_that_begins_to_wait_for_bytes_has_the_window_opened() -> None:
    session, transport, _ = short_of_room()
    session.data_received(data(1, bytes(50_000)))
    session.needs_bytes()
    session.needs_bytes()
    await asyncio.sleep(0)
    assert transport.kinds() == [FrameType.WINDOW_UPDATE]


async def test_a_connection_that_is_lost_gives_back_what_it_brought_and_waits_for_nothing() -> None:
    session, transport, account = short_of_room()
    session.data_received(data(1, bytes(50_000)))
    session.connection_lost(None)
    assert (account.held, account.connections) == (1, 0)
    account.give_back(1)
    await asyncio.sleep(0)
    assert transport.kinds() == []


async def test_what_was_said_in_the_turn_in_which_the_peer_stops_talking_is_written() -> None:
    session, transport = connected()
    other = ListTransport()
    await asyncio.sleep(0.01)
    transport.turn.write(other, b"the first of the turn, which goes at once")
    session.data_received(HELLO + frames.frame(FrameType.PING, 0, 0, b"12345678"))
    session.eof_received()
    assert FrameType.PING in [kind for kind, _, _, _ in split(transport.written)]

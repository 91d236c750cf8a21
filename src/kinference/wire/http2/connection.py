"""One HTTP/2 connection as a server sees it, without a socket: bytes in, events and bytes out (RFC 9113).

The shell feeds what it read, acts on the events, calls `answers` for what it wants sent, and writes what `take_output`
gives. Nothing here waits and nothing asks for the time.
"""

from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar

from kinference.ids import Seconds
from kinference.wire.http2 import frames
from kinference.wire.http2.answers import Answers
from kinference.wire.http2.events import (
    ConnectionEnded,
    DataReceived,
    Event,
    PingAcknowledged,
    RequestReceived,
    StreamDrained,
    StreamReset,
)
from kinference.wire.http2.fields import Fields
from kinference.wire.http2.frames import (
    END_STREAM,
    PADDED,
    STREAM_ID_MAX,
    ConnectionFault,
    ErrorCode,
    FrameType,
    StreamFault,
)
from kinference.wire.http2.guard import Guard, Http2Limits, Nuisance
from kinference.wire.http2.heads import Heads
from kinference.wire.http2.intake import Intake
from kinference.wire.http2.outbox import Outbox
from kinference.wire.http2.reader import Callbacks, FrameReader, OnFrame
from kinference.wire.http2.requests import Request
from kinference.wire.http2.settings import Setting
from kinference.wire.http2.streams import (
    HALF_CLOSED_REMOTE,
    PEER_ENDS,
    State,
    Stream,
    Streams,
    check,
)
from kinference.wire.http2.streams import Event as Step
from kinference.wire.http2.whole import WholeRequests

Head = TypeVar("Head")

CREDIT_BYTES_MIN: Final = 1024
"""A WINDOW_UPDATE of less is of little use; a reader of large answers sends many of more."""


class Http2Connection(Generic[Head]):
    """The server's side. `read_head` makes of a valid request what the events are to carry, `read_on` (see `Heads`) of
    one with more fields; both must be pure.
    """

    def __init__(
        self,
        read_head: Callable[[Request], Head],
        limits: Http2Limits,
        now: Seconds,
        read_on: Callable[[Head, Fields], Head | None] | None = None,
    ) -> None:
        self._limits, self._streams_max = limits, limits.streams_max
        self._guard = Guard(limits.rates, now)
        self._now = now
        self._streams = Streams()
        self._outbox = Outbox(limits.output_bytes_max)
        self._heads = Heads(read_head, limits.header_list_bytes_max, read_on)
        self._intake = Intake(limits, self._outbox.write)
        self.answers = Answers(limits, self._guard, self._streams, self._intake, self._outbox)
        self._unopened = self.answers.unopened
        self.is_closed = False
        self._whole = WholeRequests(limits, self._streams, self._heads, self._intake, self.answers)
        self._events = self._whole.events
        callbacks = Callbacks(self._on_block, self._whole.read, self._break)
        self._reader = FrameReader(limits, self._guard, self._on_frame(), callbacks)
        self._whole.blame = self._reader.blame
        self._greet()

    # --- reading ---------------------------------------------------------------------------------

    def feed(self, data: bytes, now: Seconds) -> list[Event[Head]]:
        """Bytes from the peer, cut anywhere."""
        events, self._now = self._events, now
        if self.is_closed:
            return events
        self._intake.measure()
        try:
            self._reader.feed(data, now)
        except ConnectionFault as fault:
            self._fail(fault)
        self._take_events()
        return events

    def _take_events(self) -> None:
        self._events = self._whole.events = []

    def _on_frame(self) -> Mapping[FrameType, OnFrame]:
        return {
            FrameType.DATA: self._on_data,
            FrameType.PRIORITY: self._on_priority,
            FrameType.RST_STREAM: self._on_rst_stream,
            FrameType.SETTINGS: self._on_settings,
            FrameType.PUSH_PROMISE: self._on_push_promise,
            FrameType.PING: self._on_ping,
            FrameType.GOAWAY: self._on_goaway,
            FrameType.WINDOW_UPDATE: self._on_window_update,
        }

    def _on_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        stream = self._streams.live.get(stream_id)
        if stream is None or stream.state is HALF_CLOSED_REMOTE:
            self._intake.arrived(size)
            check(FrameType.DATA, stream_id, self._known(stream_id))
            self._guard.charge(Nuisance.EMPTY, self._now)
            return
        self._intake.arrived(size, stream)
        data = payload
        if flags & PADDED:
            data = frames.unpadded(payload)
            self._intake.taken(stream, size - len(data))
        ended = bool(flags & END_STREAM)
        if not data and not ended:
            self._guard.charge(Nuisance.EMPTY, self._now)
        if stream.body_left is not None:
            self._count_body(stream, len(data), ended)
        if ended:
            self._streams.advance(stream, PEER_ENDS)
        self._events.append(DataReceived(stream_id, data, ended))

    def _count_body(self, stream: Stream, size: int, ended: bool) -> None:
        assert stream.body_left is not None, "the caller looks"
        stream.body_left -= size
        if stream.body_left < 0 or (ended and stream.body_left):
            raise StreamFault(ErrorCode.PROTOCOL_ERROR, "a body of another length than declared")

    def _on_block(self, stream_id: int, block: bytes, ended: bool) -> None:
        """A whole header block: a request, or the trailers of one."""
        if stream_id > self._streams.last_id and stream_id & 1:
            self._open(stream_id, block, ended)
            return
        stream = self._streams.live.get(stream_id)
        if stream is not None and stream.state is not HALF_CLOSED_REMOTE:
            self._end_with_trailers(stream, block, ended)
        else:
            self._heads.skip(block)
            check(FrameType.HEADERS, stream_id, self._known(stream_id))

    def _open(self, stream_id: int, block: bytes, ended: bool) -> None:
        stream = self.answers.begin(stream_id)
        head, stream.body_left = self._heads.request(block)
        if len(self._streams.live) + len(self._unopened) > self._limits.streams_max:
            self._guard.charge(Nuisance.RESET, self._now)
            raise StreamFault(ErrorCode.REFUSED_STREAM, "too many streams at once")
        if ended:
            if stream.body_left:
                raise StreamFault(ErrorCode.PROTOCOL_ERROR, "a body of another length than declared")
            self._streams.advance(stream, PEER_ENDS)
        self._events.append(RequestReceived(stream_id, head, ended))

    def _end_with_trailers(self, stream: Stream, block: bytes, ended: bool) -> None:
        self._heads.trailers(block)
        if not ended:
            raise StreamFault(ErrorCode.PROTOCOL_ERROR, "a second header block that does not end the stream")
        if stream.body_left is not None:
            self._count_body(stream, 0, ended=True)
        self._streams.advance(stream, PEER_ENDS)
        self._events.append(DataReceived(stream.id, b"", ended=True))

    def _on_priority(self, _flags: int, stream_id: int, payload: bytes) -> None:
        frames.expect_stream(stream_id, "PRIORITY")
        self._guard.charge(Nuisance.CONTROL, self._now)
        if len(payload) != frames.PRIORITY_BYTES:
            is_idle = self._known(stream_id) is State.IDLE  # no stream yet that could be reset
            fault = ConnectionFault if is_idle else StreamFault
            raise fault(ErrorCode.FRAME_SIZE_ERROR, "PRIORITY of a wrong length")

    def _on_rst_stream(self, _flags: int, stream_id: int, payload: bytes) -> None:
        frames.expect_length(payload, 4, "RST_STREAM")
        self._guard.charge(Nuisance.RESET, self._now)
        if check(FrameType.RST_STREAM, stream_id, self._known(stream_id)):
            self.answers.drop(self._streams.live[stream_id], Step.PEER_RESETS)
            self._events.append(StreamReset(stream_id, int.from_bytes(payload), by_peer=True))

    def _on_settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        frames.expect_connection(stream_id, "SETTINGS")
        if flags & frames.ACK:
            frames.expect_length(payload, 0, "an acknowledgement of SETTINGS")
            return
        self._guard.charge(Nuisance.CONTROL, self._now)
        grown = self.answers.heed(payload)
        self._reply(frames.frame(FrameType.SETTINGS, frames.ACK, 0))  # first: grpc's windows grow when they see it
        if grown:
            for stream in self._streams.live.values():
                self._grow(stream, grown, ConnectionFault)

    def _on_push_promise(self, _flags: int, _stream_id: int, _payload: bytes) -> None:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PUSH_PROMISE from a client")

    def _on_ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        frames.expect_connection(stream_id, "PING")
        frames.expect_length(payload, 8, "PING")
        if flags & frames.ACK:
            self._events.append(PingAcknowledged())
        else:
            self._guard.charge(Nuisance.CONTROL, self._now)
            self._reply(frames.frame(FrameType.PING, frames.ACK, 0, payload))

    def _on_goaway(self, _flags: int, stream_id: int, payload: bytes) -> None:
        """The peer will open no more streams; those that are open go on."""
        frames.expect_connection(stream_id, "GOAWAY")
        self._guard.charge(Nuisance.CONTROL, self._now)
        if len(payload) < frames.GOAWAY_BYTES_MIN:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "GOAWAY of a wrong length")

    def _on_window_update(self, _flags: int, stream_id: int, payload: bytes) -> None:
        frames.expect_length(payload, 4, "WINDOW_UPDATE")
        increment = frames.u31(payload)
        if increment < CREDIT_BYTES_MIN:
            self._guard.charge(Nuisance.EMPTY, self._now)
        if stream_id == 0:
            if increment == 0:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a window of the connection that grows by nothing")
            self._outbox.window += increment
            if self._outbox.window > frames.WINDOW_MAX:
                raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "a window of the connection that is too large")
            self._take_turns()
        elif check(FrameType.WINDOW_UPDATE, stream_id, self._known(stream_id)):
            if increment == 0:
                raise StreamFault(ErrorCode.PROTOCOL_ERROR, "a window that grows by nothing")
            self._grow(self._streams.live[stream_id], increment, StreamFault)

    def _grow(self, stream: Stream, increment: int, fault: type[ConnectionFault | StreamFault]) -> None:
        stream.send_window += increment
        if stream.send_window > frames.WINDOW_MAX:
            raise fault(ErrorCode.FLOW_CONTROL_ERROR, "a window that is too large")
        self._outbox.window_grew(stream)
        self._take_turns()

    def _take_turns(self) -> None:
        self._events += [StreamDrained(stream.id) for stream in self._outbox.turn()]

    def _known(self, stream_id: int) -> State:
        """The state of a stream that the peer names, and that goes on with that if it came whole. Those of even numbers
        would be ours to open, and none is.
        """
        if not stream_id & 1:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"a frame on stream {stream_id}, which no client opens")
        self.answers.open(stream_id)
        return self._streams.state_of(stream_id)

    # --- ends ------------------------------------------------------------------------------------

    def _break(self, stream_id: int, code: ErrorCode) -> None:
        """End a stream because of what the peer did on it."""
        stream = self._streams.live.get(stream_id)
        self._reply(frames.rst_stream(stream_id, code))
        if stream is None:
            self._streams.remember(stream_id, State.RESET_BY_US)
            return
        self.answers.drop(stream, Step.WE_RESET)
        self._events.append(StreamReset(stream_id, code, by_peer=False))

    def _fail(self, fault: ConnectionFault) -> None:
        self.is_closed = True
        for stream_id in tuple(self._unopened):  # none of them is answered any more
            self.answers.open(stream_id)
        self._outbox.write(frames.goaway(self._streams.last_id, fault.code, fault.message))
        self._events.append(ConnectionEnded(fault.code, fault.message))

    def _reply(self, reply: bytes) -> None:
        """Write what the peer makes us write. A peer that does not read it, and goes on, is cut off."""
        self._outbox.write(reply)
        if self._outbox.size > self._limits.output_bytes_max + self._limits.answers_bytes_max:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "answers pile up unread")

    # --- writing ---------------------------------------------------------------------------------

    def ping(self) -> None:
        """Ask whether the peer is there."""
        self._outbox.write(frames.frame(FrameType.PING, 0, 0, b"kinferen"))

    def announce_end(self) -> None:
        """Ask the peer to open no more streams; those on their way are still taken."""
        self._outbox.write(frames.goaway(STREAM_ID_MAX, ErrorCode.NO_ERROR))

    def close(self) -> None:
        """Say goodbye; nothing is read from here on."""
        if not self.is_closed:
            self.is_closed = True
            self._outbox.write(frames.goaway(self._streams.last_id, ErrorCode.NO_ERROR))

    # --- the shell's side ------------------------------------------------------------------------

    @property
    def is_withholding(self) -> bool:
        """Whether the peer is kept from sending, until `open_window`, because too much waits for the handlers."""
        return self._intake.is_withholding

    def open_window(self) -> None:
        """Let the peer send again."""
        self._intake.open_window()

    def lose(self) -> None:
        """The transport is gone: nothing that came is kept for anyone."""
        self._intake.close()

    def take_output(self) -> bytes:
        """What is to be written now."""
        return self._outbox.take()

    def pause(self) -> None:
        """The shell can take no more: streams wait."""
        self._outbox.paused = True

    def resume(self) -> list[Event[Head]]:
        """The shell can take more: let the streams that wait go on."""
        self._outbox.paused = False
        self._take_turns()
        events = self._events
        self._take_events()
        return events

    @property
    def is_settled(self) -> bool:
        """Whether the peer's first SETTINGS have come."""
        return self._reader.is_settled

    @property
    def is_full(self) -> bool:
        """Whether more is to be written than waits at once."""
        return self._outbox.is_full

    @property
    def has_turns(self) -> bool:
        """Whether `resume` would send something now."""
        return self._outbox.has_turns

    def _greet(self) -> None:
        limits = self._limits
        self._outbox.write(
            frames.settings(
                {
                    Setting.MAX_CONCURRENT_STREAMS: limits.streams_max,
                    Setting.INITIAL_WINDOW_SIZE: limits.stream_window,
                    Setting.MAX_FRAME_SIZE: limits.frame_bytes_max,
                    Setting.MAX_HEADER_LIST_SIZE: limits.header_list_bytes_max,
                }
            )
        )
        self._outbox.write(frames.window_update(0, limits.connection_window - frames.WINDOW_DEFAULT))

"""What is fuzzed: each target takes any bytes and raises when something holds no more that has to hold for all."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from hpack import Decoder, HPACKError

from kinference.ports import Headers
from kinference.wire.grpc import RESPONSE, TRAILERS_OK, CallHead, Deframer, read_head
from kinference.wire.http1.replies import NotHttp, ReplyReader
from kinference.wire.http1.requests import Event as Http1Event
from kinference.wire.http1.requests import RequestReader
from kinference.wire.http2.connection import Http2Connection
from kinference.wire.http2.events import ConnectionEnded, DataReceived, Event, RequestReceived, StreamReset
from kinference.wire.http2.frames import PREFACE, ConnectionFault, settings
from kinference.wire.http2.guard import Http2Limits
from kinference.wire.http2.headers import HeaderDecoder, list_bytes
from kinference.wire.rpc import RpcError
from kinference.wire.server_options import HttpServerOptions
from tests.fuzz import shapes

Http2Event = Event[CallHead]
GREETING = PREFACE + settings({})
LIMITS = Http2Limits(streams_max=4, stream_window=65_536, frame_bytes_max=16_384, header_list_bytes_max=4096)
MESSAGE_MAX = 64
BODY_PIECE_MAX = 65_536


def cuts(data: bytes) -> tuple[bytes, Sequence[bytes]]:
    """Bytes whole, and in pieces: the first byte of the input tells how long they are."""
    size = (data[0] if data else 0) % 32 + 1
    whole = data[1:]
    return whole, [whole[at : at + size] for at in range(0, len(whole), size)]


def http2(data: bytes) -> None:
    """Frames after a greeting: cut anywhere they mean the same, and a server that answers keeps its books."""
    whole, pieces = cuts(data)
    at_once, bit_by_bit = _connection(), _connection()
    read = [event for piece in pieces for event in bit_by_bit.feed(piece, 0.0)]
    assert list(_apart(at_once.feed(whole, 0.0))) == list(_apart(read)), "a cut changes the meaning"
    assert at_once.take_output() == bit_by_bit.take_output(), "a cut changes the answer"
    _serve(pieces)
    _serve([whole])


def _connection() -> Http2Connection[CallHead]:
    connection = Http2Connection(read_head, LIMITS, 0.0)
    connection.feed(GREETING, 0.0)
    return connection


def _serve(pieces: Sequence[bytes]) -> None:
    """Take what arrives, answer every request with as much as it sent, and look that output stays within bounds."""
    connection = _connection()
    for piece in pieces:
        for event in connection.feed(piece, 0.0):
            _act(connection, event)
        assert len(connection.take_output()) <= LIMITS.output_bytes_max + LIMITS.answers_bytes_max + BODY_PIECE_MAX


def _apart(events: Iterable[Http2Event]) -> Iterator[Http2Event]:
    """Each request, and then its end: where all of it is there they are told as one. The end of a stream that nobody was
    told of means nothing.
    """
    told: set[int] = set()
    for event in events:
        if isinstance(event, RequestReceived):
            told.add(event.stream_id)
        if isinstance(event, StreamReset) and event.stream_id not in told:
            continue
        if isinstance(event, RequestReceived) and event.ended:
            yield RequestReceived(event.stream_id, event.head, ended=False)
            yield DataReceived(event.stream_id, event.data, ended=True)
        else:
            yield event


def _act(connection: Http2Connection[CallHead], event: Http2Event) -> None:
    if isinstance(event, RequestReceived) and connection.answers.is_sendable(event.stream_id):
        connection.answers.send_headers(event.stream_id, RESPONSE)
        if event.ended:
            connection.answers.send_trailers(event.stream_id, TRAILERS_OK)
    elif isinstance(event, DataReceived):
        connection.answers.consume(event.stream_id, len(event.data))
        if (
            connection.answers.is_sendable(event.stream_id)
            and connection.answers.send_data(event.stream_id, event.data)
            and event.ended
        ):
            connection.answers.send_trailers(event.stream_id, TRAILERS_OK)
    elif isinstance(event, ConnectionEnded):
        assert connection.is_closed


def hpack(data: bytes) -> None:
    """Header blocks, one after the other: what we and the hpack library both read, we read alike."""
    ours, theirs = HeaderDecoder(), Decoder()
    for block in _blocks(data):
        try:
            fields = ours.decode(block)
        except ConnectionFault:
            return
        assert list_bytes(fields) >= 32 * len(fields)
        try:
            expected = theirs.decode(block, raw=True)
        except HPACKError:
            return
        assert [(name, value) for name, value, _, _ in fields] == [(name, value) for name, value in expected]


def _blocks(data: bytes) -> Iterator[bytes]:
    """Each begins with a byte that tells its length."""
    at = 0
    while at < len(data):
        yield data[at + 1 : at + 1 + data[at]]
        at += 1 + data[at]


def grpc(data: bytes) -> None:
    """Messages of a call: cut anywhere they are the same ones, or the same fault."""
    whole, pieces = cuts(data)
    assert _messages([whole]) == _messages(pieces), "a cut changes the messages"


def _messages(pieces: Sequence[bytes]) -> Sequence[bytes] | RpcError | str:
    deframer = Deframer(MESSAGE_MAX)
    try:
        found = [message for piece in pieces for message in deframer.feed(piece)]
    except RpcError as error:
        return str(error)
    assert all(len(message) <= MESSAGE_MAX for message in found)
    return found


def http1(data: bytes) -> None:
    """Requests of a connection, and a reply: cut anywhere they are the same ones, or refused alike."""
    whole, pieces = cuts(data)
    assert _requests([whole]) == _requests(pieces), "a cut changes the requests"
    for to_head in (False, True):
        assert _reply([whole], to_head=to_head) == _reply(pieces, to_head=to_head), "a cut changes the reply"


def _reply(pieces: Sequence[bytes], *, to_head: bool) -> tuple[int, Headers, bytes, bool, bool] | None:
    """None for what is no reply."""
    reader = ReplyReader()
    reader.expect(to_head=to_head)
    try:
        for piece in pieces:
            reader.feed(piece)
    except NotHttp:
        return None
    is_reusable = reader.is_reusable
    return reader.status, reader.headers, b"".join(reader.pieces), is_reusable, reader.end()


def _requests(pieces: Sequence[bytes]) -> Sequence[Http1Event]:
    """The events, pieces of one body joined."""
    reader = RequestReader(HttpServerOptions(fields_max=8))
    joined: list[Http1Event] = []
    for event in (event for piece in pieces for event in reader.feed(piece)):
        last = joined[-1] if joined else None
        if isinstance(event, bytes) and isinstance(last, bytes):
            joined[-1] = last + event
        else:
            joined.append(event)
    return joined


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "http2": http2,
    "hpack": hpack,
    "grpc": grpc,
    "http1": http1,
    **shapes.TARGETS,
}

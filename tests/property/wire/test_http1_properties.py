"""Sessions cut anywhere mean the same, and nothing that a peer can send makes a reader do more than refuse it."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from kinference.wire.http1.replies import NotHttp, ReplyReader
from kinference.wire.http1.requests import End, Event, Malformed, RequestReader
from kinference.wire.server_options import HttpServerOptions

SESSION = (
    b"GET /1 HTTP/1.1\r\nhost: h\r\n\r\n"
    b"POST /2?x HTTP/1.1\r\nHost: h\r\nX-A:  b \r\ncontent-length: 5\r\n\r\nhello"
    b"\r\nPOST /3 HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n3;e=1\r\nabc\r\n0b\r\ndefghijklmn\r\n0\r\nt: 1\r\n\r\n"
    b"POST /4 HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: h2c\r\ncontent-length: 2\r\n\r\nok"
    b"HEAD / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"
)
ANSWERS = (
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;e=1\r\nabc\r\n0b\r\ndefghijklmn\r\n0\r\nt: 1\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
)

delicate = st.sampled_from(
    [
        *(b"upgrade: h2c", b"connection: upgrade", b"connection: close", b"connection: keep-alive, Upgrade"),
        *(b"expect: 100-continue", b"trailer: t", b"te: trailers", b"x:", b"y:   v  "),
    ]
)
FRAMINGS: list[tuple[list[bytes], bytes]] = [
    ([], b""),
    ([], b"\r\n"),
    ([b"content-length: 3"], b"abc"),
    ([b"content-length: 0"], b""),
    ([b"transfer-encoding: chunked"], b"3;a=b\r\nabc\r\n1\r\nd\r\n0\r\nt: 1\r\n\r\n"),
    ([b"transfer-encoding: chunked"], b"0\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
    ([b"transfer-encoding: chunked"], b"3\r\nabc\r\n0\r\nt: 1\r\n folded\r\n\r\n"),
    ([b"transfer-encoding: gzip, chunked"], b"0\r\n\r\n"),
    ([b"content-length: 3", b"transfer-encoding: chunked"], b"0\r\n\r\n"),
]
cuts = st.lists(st.integers(1, len(SESSION) - 1), max_size=12)
alphabet = st.sampled_from(
    [*SESSION.split(b"\r\n"), b"\r\n", b"\r", b"\n", b" ", b"\t", b":", b"\x00", b"chunked", b"content-length: 3", b"0"]
)
noise = st.lists(st.one_of(alphabet, st.binary(max_size=8)), max_size=30)


def pieces(raw: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted({place for place in places if 0 < place < len(raw)}), len(raw)]
    return [raw[start:end] for start, end in itertools.pairwise(edges)]


def joined(events: list[Event]) -> list[Event]:
    """The events with the pieces of each body as one."""
    whole: list[Event] = []
    for event in events:
        last = whole[-1] if whole else None
        if isinstance(event, bytes) and isinstance(last, bytes):
            whole[-1] = last + event
        else:
            whole.append(event)
    return whole


def read(cut: list[bytes], options: HttpServerOptions | None = None) -> list[Event]:
    reader = RequestReader(options or HttpServerOptions())
    return joined([event for piece in cut for event in reader.feed(piece)])


def test_a_session_cut_at_any_one_byte_means_the_same() -> None:
    whole = read([SESSION])
    assert sum(event is End.OF_REQUEST for event in whole) == 5
    for place in range(1, len(SESSION)):
        assert read(pieces(SESSION, [place])) == whole


def test_a_session_byte_by_byte_means_the_same() -> None:
    assert read([SESSION[at : at + 1] for at in range(len(SESSION))]) == read([SESSION])


@given(cuts)
def test_a_session_cut_anywhere_means_the_same(places: list[int]) -> None:
    assert read(pieces(SESSION, places)) == read([SESSION])


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """A request with what changes how a connection goes on, mostly well formed."""
    fields = draw(st.lists(delicate, max_size=5))
    framing, body = draw(st.sampled_from(FRAMINGS))
    if draw(st.booleans()):
        fields.append(draw(st.sampled_from([b"host: h", b"host: h", b"x : y", b"x: a\r\n folded", b"h\xff: y"])))
    method, version = draw(st.sampled_from([b"GET", b"POST", b"HEAD"])), draw(st.sampled_from([b"1.1", b"1.1", b"1.0"]))
    lines = [method + b" / HTTP/" + version, *draw(st.permutations([b"host: h", *framing, *fields]))]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@given(st.lists(requests(), min_size=1, max_size=4).map(b"".join), st.lists(st.integers(1, 600), max_size=6))
def test_whatever_changes_how_a_connection_goes_on_a_cut_does_not(session: bytes, places: list[int]) -> None:
    options = HttpServerOptions(fields_max=6)
    whole = read([session], options)
    assert read(pieces(session, places), options) == whole
    assert read([session[at : at + 1] for at in range(len(session))], options) == whole


@given(noise)
def test_whatever_comes_is_read_or_refused_and_the_refusal_is_the_last(data: list[bytes]) -> None:
    events = read(data, HttpServerOptions(field_bytes_max=200, fields_max=5))
    refusals = [at for at, event in enumerate(events) if isinstance(event, Malformed)]
    assert refusals in ([], [len(events) - 1])


@given(st.lists(st.integers(1, 80), max_size=8), st.sampled_from(ANSWERS))
def test_an_answer_cut_anywhere_means_the_same(places: list[int], raw: bytes) -> None:
    whole, cut = ReplyReader(), ReplyReader()
    for reply, came in ((whole, [raw]), (cut, pieces(raw, places))):
        reply.expect(to_head=False)
        for piece in came:
            reply.feed(piece)
    assert cut.is_complete
    assert cut.is_reusable
    assert (cut.status, cut.headers, b"".join(cut.pieces)) == (whole.status, whole.headers, b"".join(whole.pieces))


@given(noise, st.booleans())
def test_whatever_a_destination_says_is_an_answer_or_not_http(data: list[bytes], to_head: bool) -> None:
    reply = ReplyReader()
    reply.expect(to_head=to_head)
    try:
        for piece in (b"HTTP/1.1 200 OK\r\n", *data):
            reply.feed(piece)
    except NotHttp:
        return
    reply.end()

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
        assert event != b"", "a piece is never empty: a chunk of nothing would end a body"
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


TRAP = b"0\r\n\r\nGET /inside HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n"
"""A body of this is a request to whoever loses count of its length."""
BEHIND = [
    b"",
    b"\r\n",
    b"G",
    b"GET / HTTP/9.9\r\n\r\n",
    b"\x00",
    b"POST / HTTP/1.1\r\nhost: h\r\nx: " + b"a" * 1_500 + b"\r\n\r\n",
]


@st.composite
def sessions_with_bodies_of_a_told_length(draw: st.DrawFn) -> tuple[bytes, list[int]]:
    """A session, and where in it to cut: mostly at an end of a head or a body, or one byte beside it."""
    session, ends = b"", []
    for _ in range(draw(st.integers(1, 4))):
        size = draw(st.one_of(st.integers(0, 4), st.integers(0, 3_000)))
        told = draw(st.sampled_from([b"%d", b"0%d", b"%d "])) % size
        fields = [b"host: h", b"content-length: " + told, *draw(st.lists(delicate, max_size=2))]
        version = draw(st.sampled_from([b"1.1", b"1.1", b"1.1", b"1.0"]))
        session += b"\r\n".join([b"POST / HTTP/" + version, *fields, b"", b""])
        ends.append(len(session))
        session += (TRAP * (size // len(TRAP) + 1))[:size]
        ends.append(len(session))
        session += draw(st.one_of(st.just(b""), requests()))
    session += draw(st.sampled_from(BEHIND))
    beside = st.sampled_from([end + by for end in ends for by in (-1, 0, 1)])
    return session, draw(st.lists(st.one_of(beside, beside, st.integers(1, len(session))), max_size=8))


@given(sessions_with_bodies_of_a_told_length(), st.one_of(st.just(0), st.integers(0, 300)))
def test_a_body_of_a_told_length_ends_where_it_was_told_wherever_it_is_cut(
    cut: tuple[bytes, list[int]], cut_off: int
) -> None:
    """All that comes at once goes through the parser; of what is cut, the rest of a body passes it by."""
    options = HttpServerOptions(field_bytes_max=1_000)
    session, places = cut[0][: len(cut[0]) - cut_off], cut[1]
    whole = read([session], options)
    assert read(pieces(session, places), options) == whole
    assert read([session[at : at + 97] for at in range(0, len(session), 97)], options) == whole


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

"""Requests from bytes: what is read, what is refused, and that no two framings are ever believed."""

import pytest

from kinference.wire.http1.requests import End, Event, Malformed, RequestHead, RequestReader
from kinference.wire.server_options import HttpServerOptions

GET = b"GET / HTTP/1.1\r\nhost: h\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nhost: h\r\n"


def reader(options: HttpServerOptions | None = None) -> RequestReader:
    return RequestReader(options or HttpServerOptions())


def read(*data: bytes) -> list[Event]:
    one = reader()
    return [event for piece in data for event in one.feed(piece)]


def head(event: Event) -> RequestHead:
    assert isinstance(event, RequestHead), event
    return event


def refusal(*data: bytes) -> int:
    *_, last = read(*data)
    assert isinstance(last, Malformed), last
    return last.status


def test_a_request_is_a_head_a_body_and_an_end() -> None:
    first, body, end = read(b"POST /v1?a=b HTTP/1.1\r\nHost: h\r\nX-A:  1 \r\ncontent-length: 3\r\n\r\nabc")
    assert head(first).method == "POST"
    assert head(first).target == "/v1?a=b"
    assert head(first).headers == [(b"host", b"h"), (b"x-a", b"1"), (b"content-length", b"3")]
    assert (head(first).is_http_1_1, head(first).keeps_alive, head(first).has_body) == (True, True, True)
    assert (body, end) == (b"abc", End.OF_REQUEST)


def test_the_chunks_that_came_together_go_out_as_one_piece_without_framing_or_trailers() -> None:
    chunks = b"2;x=y\r\nab\r\n1\r\nc\r\n0\r\nx-trailer: 1\r\n\r\n"
    _, body, end = read(POST + b"transfer-encoding: Chunked\r\n\r\n" + chunks)
    assert (body, end) == (b"abc", End.OF_REQUEST)


def test_the_rest_of_a_long_body_goes_out_as_it_came_and_the_next_request_is_read_behind_it() -> None:
    one, rest = reader(), b"c" * 1_000
    assert one.feed(POST + b"content-length: 2003\r\n\r\nab")[1:] == [b"ab"]
    assert one.feed(rest)[0] is rest
    last = one.feed(b"d" * 1_001 + POST + b"content-length: 3\r\n\r\na")
    assert [type(event) for event in last] == [bytes, End, RequestHead, bytes]
    assert last[0] == b"d" * 1_001
    assert one.feed(b"bc") == [b"bc", End.OF_REQUEST]
    assert [type(event) for event in one.feed(GET)] == [RequestHead, End]


def test_nothing_is_read_behind_the_long_body_of_a_last_request() -> None:
    one = reader()
    one.feed(POST + b"connection: close\r\ncontent-length: 3\r\n\r\n")
    assert one.feed(b"abc" + GET) == [b"abc", End.OF_REQUEST]
    assert one.is_over
    assert one.feed(GET) == []


def test_a_fault_behind_a_long_body_is_told_after_it() -> None:
    one = reader()
    one.feed(POST + b"content-length: 3\r\n\r\na")
    assert one.feed(b"bcGET / HTTP/9.9\r\n\r\n") == [b"bc", End.OF_REQUEST, Malformed(400, "malformed request")]


def test_requests_sent_ahead_come_one_after_the_other() -> None:
    events = read(GET + POST + b"content-length: 1\r\n\r\nx" + GET)
    assert [type(event) for event in events] == [RequestHead, End, RequestHead, bytes, End, RequestHead, End]


def test_a_request_without_a_body_says_so() -> None:
    assert not head(read(GET)[0]).has_body
    assert not head(read(POST + b"content-length: 00\r\n\r\n")[0]).has_body


@pytest.mark.parametrize(
    ("version", "connection", "kept"),
    [("1.1", "", True), ("1.1", "close", False), ("1.0", "", False), ("1.0", "keep-alive", True)],
)
def test_who_keeps_the_connection_is_for_version_and_field_to_say(version: str, connection: str, kept: bool) -> None:
    field = f"connection: {connection}\r\n" if connection else ""
    assert head(read(f"GET / HTTP/{version}\r\nhost: h\r\n{field}\r\n".encode())[0]).keeps_alive is kept


def test_nothing_is_read_after_a_request_that_ends_the_connection() -> None:
    one = reader()
    events = one.feed(b"GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n" + GET)
    assert [type(event) for event in events] == [RequestHead, End]
    assert one.feed(GET) == []
    assert one.is_over


@pytest.mark.parametrize(
    "body", [b"content-length: 3\r\n\r\nabc", b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"]
)
def test_an_offer_to_upgrade_is_passed_over_and_the_body_read_all_the_same(body: bytes) -> None:
    raw = POST + b"connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AA\r\n" + body
    first, piece, end, *rest = read(raw + GET)
    assert head(first).target == "/"
    assert (piece, end) == (b"abc", End.OF_REQUEST)
    assert [type(event) for event in rest] == [RequestHead, End]


def test_nothing_is_read_after_a_last_request_that_offered_to_upgrade() -> None:
    raw = b"GET / HTTP/1.0\r\nconnection: upgrade\r\nupgrade: h2c\r\ncontent-length: 2\r\n\r\nhi"
    one = reader()
    assert [type(event) for event in one.feed(raw + GET)] == [RequestHead, bytes, End]
    assert one.is_over


def test_any_number_of_offers_to_upgrade_is_read_at_once() -> None:
    offer = b"GET / HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"
    events = read(offer * 2000)
    assert [type(event) for event in events] == [RequestHead, End] * 2000


SMUGGLED = b"\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: h\r\n\r\n"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(b"content-length: 6\r\ntransfer-encoding: chunked\r\n", id="I10a length first"),
        pytest.param(b"transfer-encoding: chunked\r\ncontent-length: 6\r\n", id="I10a coding first"),
        pytest.param(b"content-length: 5\r\ncontent-length: 6\r\n", id="I10b two lengths"),
        pytest.param(b"content-length: 5\r\ncontent-length: 5\r\n", id="I10b twice the same"),
        pytest.param(b"content-length: 5, 6\r\n", id="I10b in one field"),
        pytest.param(b"transfer-encoding: chunked\t\r\n", id="I10c tab"),
        pytest.param(b"transfer-encoding: chunked \r\n", id="I10c space"),
        pytest.param(b"transfer-encoding:  xchunked\r\n", id="I10c xchunked"),
        pytest.param(b"transfer-encoding: gzip, chunked\r\n", id="two codings"),
        pytest.param(b"transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n", id="two coding fields"),
        pytest.param(b"transfer-encoding: identity\r\n", id="identity"),
        pytest.param(b"transfer-encoding:\r\ncontent-length: 5\r\n", id="empty coding"),
        pytest.param(b"transfer-encoding : chunked\r\n", id="space before the colon"),
        pytest.param(b"transfer-encoding\r\n : chunked\r\n", id="folded"),
        pytest.param(b"x: y\r\n transfer-encoding: chunked\r\n", id="folded value"),
        pytest.param(b"x: y\ntransfer-encoding: chunked\r\n", id="bare line feed"),
        pytest.param(b"x: y\rtransfer-encoding: chunked\r\n", id="bare return"),
        pytest.param(b"content-length: +5\r\n", id="signed length"),
        pytest.param(b"content-length: 0x5\r\n", id="hexadecimal length"),
        pytest.param(b"content-length: \r\n", id="empty length"),
        pytest.param(b"content-length: 99999999999999999999\r\n", id="length beyond 64 bits"),
        pytest.param(b"x: a\x00b\r\n", id="NUL"),
        pytest.param(b"x\x00: b\r\n", id="NUL in a name"),
        pytest.param(b": b\r\n", id="no name"),
        pytest.param(b"host: other\r\n", id="second host"),
    ],
)
def test_i10_a_framing_that_two_readers_may_read_differently_is_refused(fields: bytes) -> None:
    events = read(POST + fields + SMUGGLED)
    assert [type(event) for event in events] == [Malformed]


@pytest.mark.parametrize(
    "chunk",
    [
        b"3\nabc",
        b"0x3\r\nabc",
        b"3 \r\nabc",
        b"+3\r\nabc",
        b"zz\r\n",
        b"3\r\nabcd",
        b"fffffffffffffffff\r\nabc",
        b"\r\n",
    ],
)
def test_a_malformed_chunk_ends_the_reading(chunk: bytes) -> None:
    assert refusal(POST + b"transfer-encoding: chunked\r\n\r\n", chunk + b"\r\n0\r\n\r\n" + GET) == 400


@pytest.mark.parametrize(
    "line",
    [
        b"get / HTTP/1.1",
        b"FOO / HTTP/1.1",
        b"GET / HTTP/1.2",
        b"GET / HTTP/2.0",
        b"GET / HTTP/0.9",
        b"GET /",
        b"GET / HTTP/1.1 ",
        b"GET /a b HTTP/1.1",
        b"GET /\x00 HTTP/1.1",
        b"GET /\xff HTTP/1.1",
        b"GET relative HTTP/1.1",
        b"GET /#fragment HTTP/1.1",
        b"GET * HTTP/1.1",
        b"CONNECT h:443 HTTP/1.1",
        b"PRI * HTTP/2.0",
        b"\x16\x03\x01\x02\x00\x01\x00",
    ],
)
def test_a_request_line_that_is_none_is_refused(line: bytes) -> None:
    assert refusal(line + b"\r\nhost: h\r\n\r\n") == 400


def test_http_1_1_needs_a_host_and_1_0_has_no_chunks() -> None:
    assert refusal(b"GET / HTTP/1.1\r\n\r\n") == 400
    assert head(read(b"GET / HTTP/1.0\r\n\r\n")[0]).target == "/"
    assert refusal(b"POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n") == 400


def test_options_may_ask_about_the_server_itself() -> None:
    assert head(read(b"OPTIONS * HTTP/1.1\r\nhost: h\r\n\r\n")[0]).target == "*"


@pytest.mark.parametrize("piece_bytes", [7, 100_000])
def test_a_head_over_its_limit_is_refused_however_it_comes(piece_bytes: int) -> None:
    raw = GET[:-2] + b"x: " + b"a" * 2000 + b"\r\n\r\n"
    one = reader(HttpServerOptions(field_bytes_max=1000))
    events = [event for at in range(0, len(raw), piece_bytes) for event in one.feed(raw[at : at + piece_bytes])]
    assert events == [Malformed(431, "request head too large")]


def test_a_head_within_its_limit_passes_though_its_body_is_longer() -> None:
    one = reader(HttpServerOptions(field_bytes_max=1000))
    events = one.feed(POST + b"content-length: 5000\r\n\r\n" + b"x" * 5000)
    assert [type(event) for event in events] == [RequestHead, bytes, End]


@pytest.mark.parametrize("piece_bytes", [1, 100_000])
def test_a_head_just_within_its_limit_passes_however_it_comes(piece_bytes: int) -> None:
    """What is counted is what is kept: not the line breaks, colons and white space around it."""
    raw = GET[:-2] + b"x:   1\r\n" * 100 + b"y: " + b"v" * (1000 - len("/hosth") - 200 - 1) + b"\r\n\r\n"
    one = reader(HttpServerOptions(field_bytes_max=1000))
    events = [event for at in range(0, len(raw), piece_bytes) for event in one.feed(raw[at : at + piece_bytes])]
    assert [type(event) for event in events] == [RequestHead, End]


def test_a_head_over_its_limit_is_refused_though_part_of_it_came_with_the_request_before() -> None:
    one = reader(HttpServerOptions(field_bytes_max=1000))
    one.feed(GET + GET[:-2] + b"x: " + b"a" * 600)
    assert one.feed(b"a" * 600 + b"\r\n\r\n") == [Malformed(431, "request head too large")]


@pytest.mark.parametrize("ends_head", [b"", b"\r\n\r\n"])
@pytest.mark.parametrize("piece_bytes", [1, 50, 100_000])
def test_a_head_over_its_limit_is_refused_behind_a_long_body(piece_bytes: int, ends_head: bytes) -> None:
    one = reader(HttpServerOptions(field_bytes_max=1000))
    one.feed(POST + b"content-length: 5000\r\n\r\n" + b"x" * 10)
    rest = b"x" * 4990 + GET[:-2] + b"x: " + b"a" * 3000 + ends_head
    events = [event for at in range(0, len(rest), piece_bytes) for event in one.feed(rest[at : at + piece_bytes])]
    assert events[-2:] == [End.OF_REQUEST, Malformed(431, "request head too large")]


def test_a_head_within_its_limit_passes_though_it_began_with_the_end_of_a_longer_body() -> None:
    one = reader(HttpServerOptions(field_bytes_max=1000))
    one.feed(POST + b"content-length: 5000\r\n\r\n")
    assert one.feed(b"x" * 5000 + GET[:-2] + b"x: " + b"a" * 450)[1:] == [End.OF_REQUEST]
    assert [type(event) for event in one.feed(b"a" * 450 + b"\r\n\r\n")] == [RequestHead, End]


@pytest.mark.parametrize("piece_bytes", [1, 100_000])
def test_a_head_with_too_many_fields_and_a_fault_is_refused_alike_however_it_comes(piece_bytes: int) -> None:
    raw = GET[:-2] + b"a: 1\r\n" * 4 + b"b\xff: 1\r\n\r\n"
    one = reader(HttpServerOptions(fields_max=3))
    events = [event for at in range(0, len(raw), piece_bytes) for event in one.feed(raw[at : at + piece_bytes])]
    assert events == [Malformed(400, "malformed request")]


def test_more_fields_than_allowed_are_refused() -> None:
    one = reader(HttpServerOptions(fields_max=3))
    assert one.feed(GET[:-2] + b"a: 1\r\n" * 3 + b"\r\n") == [Malformed(431, "request head too large")]


@pytest.mark.parametrize("endless", [b"0\r\n" + b"x-trailer: 1\r\n" * 100, b"5;" + b"x" * 1500])
def test_trailers_and_chunk_extensions_without_end_are_refused(endless: bytes) -> None:
    one = reader(HttpServerOptions(field_bytes_max=1000))
    one.feed(POST + b"transfer-encoding: chunked\r\n\r\n")
    events = [event for at in range(0, len(endless), 50) for event in one.feed(endless[at : at + 50])]
    assert isinstance(events[-1], Malformed)


@pytest.mark.parametrize(("sent", "is_within"), [(b"", False), (b"\r\n", False), (b"GET / HT", True), (GET, False)])
def test_whether_a_head_is_under_way_is_known(sent: bytes, is_within: bool) -> None:
    one = reader()
    one.feed(sent)
    assert one.is_within_head is is_within

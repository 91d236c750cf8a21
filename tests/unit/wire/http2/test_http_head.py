"""What a request of HTTP/2 comes to."""

import pytest

from kinference.wire.http2.fields import field
from kinference.wire.http2.frames import StreamFault
from kinference.wire.http2.http_head import read_head
from kinference.wire.http2.requests import Request


def request(
    *fields: tuple[bytes, bytes], method: bytes = b"GET", path: bytes = b"/", authority: bytes = b"h"
) -> Request:
    return Request(method, b"https", authority, path, tuple(field(*pair) for pair in fields), None)


def test_path_and_query_part_at_the_first_question_mark() -> None:
    head = read_head(request(path=b"/a%2Fb?c?d"), 10)
    assert (head.method, head.path, head.query, head.refusal) == ("GET", "/a%2Fb", "c?d", 0)


def test_the_authority_is_the_host_and_the_host_will_do_without_it() -> None:
    assert read_head(request((b"x", b"1")), 10).headers == [(b"host", b"h"), (b"x", b"1")]
    assert read_head(request((b"x", b"1"), (b"host", b"i"), authority=b""), 10).headers[0] == (b"host", b"i")
    assert read_head(request((b"host", b"h")), 10).headers == [(b"host", b"h")]


def test_cookies_are_joined() -> None:
    head = read_head(request((b"cookie", b"a=1"), (b"x", b""), (b"cookie", b"b=2")), 10)
    assert head.headers[1:] == [(b"x", b""), (b"cookie", b"a=1; b=2")]


@pytest.mark.parametrize(
    "bad",
    [
        request(method=b"GET /x"),
        request(path=b"/a b"),
        request(path=b"/a\x7f"),
        request(path="/é".encode()),
        request(path=b"/#f"),
        request(authority=b""),
        request(authority=b"user@h"),
        request(authority=b"h/x"),
        request((b"host", b"other")),
        request((b"host", b"a"), (b"host", b"b"), authority=b""),
        request((b"x", b"a\x01b")),
    ],
)
def test_what_no_request_line_or_field_could_say_is_malformed(bad: Request) -> None:
    with pytest.raises(StreamFault, match="malformed"):
        read_head(bad, 10)


def test_what_could_be_said_and_is_not_taken_is_refused() -> None:
    assert read_head(request(method=b"CONNECT", path=b""), 10).refusal == 400
    assert read_head(request(path=b"*"), 10).refusal == 400
    assert read_head(request(path=b"*", method=b"OPTIONS"), 10).refusal == 0
    assert read_head(request(*[(b"x", b"")] * 10), 10).refusal == 431

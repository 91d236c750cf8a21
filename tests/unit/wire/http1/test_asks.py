"""How a request goes onto the wire."""

import pytest

from kinference.errors import UpstreamUnreachable
from kinference.ports import Headers, UpstreamRequest
from kinference.wire.http1.asks import pieces_of


def request(
    method: str = "POST", target: str = "/v1?a=b", headers: Headers = (), body: tuple[bytes, ...] = ()
) -> UpstreamRequest:
    return UpstreamRequest(method, "http://engine:80", target, headers, body)


def test_a_request_leaves_with_its_host_its_fields_and_the_length_of_its_body() -> None:
    headers = ((b"a", b"1"), (b"connection", b"close"), (b"content-length", b"9"), (b"b", b""))
    assert pieces_of(request(headers=headers, body=(b"x", b"yz"))) == [
        b"POST /v1?a=b HTTP/1.1\r\nhost: engine\r\na: 1\r\nb: \r\ncontent-length: 3\r\n\r\nxyz"
    ]


def test_only_a_request_that_could_have_a_body_says_that_it_has_none() -> None:
    assert pieces_of(request("GET")) == [b"GET /v1?a=b HTTP/1.1\r\nhost: engine\r\n\r\n"]
    assert b"content-length: 0" in pieces_of(request())[0]


def test_a_large_body_is_not_copied() -> None:
    body = (b"x" * 20_000, b"y")
    head, *rest = pieces_of(request(body=body))
    assert head.endswith(b"content-length: 20001\r\n\r\n")
    assert [piece is sent for piece, sent in zip(rest, body, strict=True)] == [True, True]


@pytest.mark.parametrize(
    "bad",
    [
        request(method="GET /"),
        request(target="/a b"),
        request(target="/a\nb"),
        request(headers=((b"a", b"\r"),)),
        request(headers=((b"a\n", b""),)),
        request(headers=((b"a", b"1\r\nb: 2"),)),
    ],
)
def test_what_would_end_a_line_before_its_time_is_not_sent(bad: UpstreamRequest) -> None:
    with pytest.raises(UpstreamUnreachable, match="line break"):
        pieces_of(bad)

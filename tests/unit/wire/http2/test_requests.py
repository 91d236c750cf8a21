"""Lists of fields as requests and trailers."""

import pytest

from kinference.wire.http2.fields import Fields, field
from kinference.wire.http2.frames import ErrorCode, StreamFault
from kinference.wire.http2.requests import check_trailers, read_request

HEAD = ((b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"here"), (b":path", b"/s/m"))


def fields(*pairs: tuple[bytes, bytes]) -> Fields:
    return tuple(field(*pair) for pair in pairs)


def test_a_request_is_its_four_fields_and_the_rest() -> None:
    request = read_request(fields(*HEAD, (b"te", b"trailers"), (b"content-length", b"3")))
    assert (request.method, request.scheme, request.authority, request.path) == (b"POST", b"http", b"here", b"/s/m")
    assert [name for name, _, _, _ in request.fields] == [b"te", b"content-length"]
    assert request.content_length == 3


@pytest.mark.parametrize(
    "pairs",
    [
        HEAD[1:],
        (HEAD[0], *HEAD[2:]),
        HEAD[:3],
        (*HEAD[:3], (b":path", b"")),
        (*HEAD[:3], (b":path", b"no-slash")),
        (*HEAD, HEAD[0]),
        (*HEAD[:3], (b"te", b"trailers"), HEAD[3]),
        (*HEAD, (b":status", b"200")),
        (*HEAD, (b"connection", b"close")),
        (*HEAD, (b"content-length", b"1"), (b"content-length", b"2")),
        ((b":method", b"CONNECT"), (b":path", b"/"), (b":authority", b"here")),
        ((b":method", b"CONNECT"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"here")),
        (),
    ],
)
def test_a_malformed_request_is_a_fault_of_its_stream(pairs: tuple[tuple[bytes, bytes], ...]) -> None:
    with pytest.raises(StreamFault) as caught:
        read_request(fields(*pairs))
    assert caught.value.code is ErrorCode.PROTOCOL_ERROR


@pytest.mark.parametrize(
    "pairs",
    [
        (*HEAD, (b"content-length", b"2"), (b"content-length", b"2")),
        ((b":method", b"OPTIONS"), (b":scheme", b"http"), (b":path", b"*")),
        ((b":method", b"CONNECT"), (b":authority", b"here:443")),
    ],
)
def test_an_unusual_request_is_one(pairs: tuple[tuple[bytes, bytes], ...]) -> None:
    assert read_request(fields(*pairs)).method == pairs[0][1]


def test_trailers_are_regular_fields() -> None:
    check_trailers(fields((b"x-checksum", b"1")))
    for pair in (HEAD[3], (b"X", b"1"), (b"content-length", b"1")):
        with pytest.raises(StreamFault):
            check_trailers(fields(pair))

"""gRPC's heads, messages and ends."""

from urllib.parse import unquote

import pytest
from hpack import Decoder
from hypothesis import given
from hypothesis import strategies as st

from kinference.wire.grpc import (
    CallHead,
    Deframer,
    is_grpc,
    percent_encoded,
    read_head,
    read_on,
    refusal_head,
    trailers,
    whole_message,
)
from kinference.wire.http2.fields import field
from kinference.wire.http2.requests import Request
from kinference.wire.rpc import RpcError, Status
from tests.unit.wire.http2.peer import framed

GRPC = (b"content-type", b"application/grpc")


def head(*pairs: tuple[bytes, bytes], method: bytes = b"POST") -> CallHead:
    fields = tuple(field(*pair) for pair in pairs)
    return read_head(Request(method, b"http", b"here", b"/package.Service/Method", fields, None))


def decoded(block: bytes) -> dict[str, str]:
    return {str(name): str(value) for name, value in Decoder().decode(block)}


def test_a_call_has_its_path_and_its_own_fields_as_metadata() -> None:
    call = head((b"te", b"trailers"), GRPC, (b"grpc-timeout", b"1S"), (b"x-a", b"1"), (b"x-b-bin", b"AAE"))
    assert call.path == "/package.Service/Method"
    assert call.metadata() == (("x-a", "1"), ("x-b-bin", b"\0\1"))
    assert call.refusal is None


def test_a_binary_field_that_is_none_stays_as_it_came() -> None:
    assert head(GRPC, (b"x-bin", b"?")).metadata() == (("x-bin", b"?"),)


@pytest.mark.parametrize(
    ("spelled", "seconds"),
    [
        (b"2H", 7200),
        (b"3M", 180),
        (b"10S", 10),
        (b"10100m", 10.1),
        (b"5u", 5e-6),
        (b"99999999n", 0.099999999),
        (b"0S", 0),
    ],
)
def test_a_timeout_is_read(spelled: bytes, seconds: float) -> None:
    assert head(GRPC, (b"grpc-timeout", spelled)).timeout == pytest.approx(seconds)


@pytest.mark.parametrize("spelled", [b"", b"S", b"1", b"1s", b"-1S", b"123456789S", b"1.5S", b"1 S"])
def test_a_timeout_that_is_none_is_refused(spelled: bytes) -> None:
    refusal = head(GRPC, (b"grpc-timeout", spelled)).refusal
    assert refusal is not None
    assert refusal.status is Status.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("content_type", "is_one"),
    [
        (b"application/grpc", True),
        (b"application/grpc+proto", True),
        (b"application/grpc;charset=utf-8", True),
        (b"application/grpc-web", False),
        (b"application/json", False),
        (b"", False),
    ],
)
def test_what_is_no_grpc_is_told_so_in_http(content_type: bytes, is_one: bool) -> None:
    assert is_grpc(content_type) is is_one
    refusal = head((b"content-type", content_type)).refusal
    assert (refusal is None) is is_one
    assert refusal is None or refusal.http_status == 415


def test_a_call_that_is_no_post_is_refused() -> None:
    refusal = head(GRPC, method=b"GET").refusal
    assert refusal is not None
    assert refusal.http_status == 405


@given(st.lists(st.binary(max_size=300), max_size=8), st.lists(st.integers(0, 40), max_size=80))
def test_messages_are_the_same_wherever_their_bytes_are_cut(messages: list[bytes], cuts: list[int]) -> None:
    deframer, rest, found = Deframer(300), b"".join(map(framed, messages)), []
    for cut in [*cuts, len(rest)]:
        found += deframer.feed(rest[:cut])
        rest = rest[cut:]
    found += deframer.feed(rest)
    assert found == messages
    assert deframer.is_between_messages


def test_a_head_goes_on_unless_more_fields_tell_of_the_call_itself() -> None:
    known = head(GRPC, (b"x-a", b"1"))
    more = (field(b"x-b", b"2"), field(b"grpc-trace-bin", b"no"), field(b"x-c-bin", b"AQ"))
    longer = read_on(known, more)
    assert longer is not None
    assert longer.metadata() == (("x-a", "1"), ("x-b", "2"), ("x-c-bin", b"\x01"))
    assert (longer.path, longer.refusal, known.metadata()) == (known.path, None, (("x-a", "1"),))
    assert read_on(known, (field(b"grpc-timeout", b"1S"),)) is None
    assert read_on(known, (field(b"content-type", b"text/html"),)) is None


def test_a_message_byte_by_byte_costs_no_object_a_byte() -> None:
    deframer = Deframer(1000)
    for byte in framed(bytes(1000))[:-1]:
        assert deframer.feed(bytes((byte,))) == []
        assert len(deframer._pieces) <= 129
    assert deframer.feed(b"\0") == [bytes(1000)]


def test_one_message_and_nothing_else_is_had_without_a_deframer() -> None:
    assert whole_message(framed(b"x" * 10), 10) == b"x" * 10
    assert whole_message(framed(b""), 10) == b""
    others = (b"", framed(b"x")[:-1], framed(b"x") + b"y", framed(b"x" * 11), b"\1" + framed(b"x")[1:])
    assert [whole_message(data, 10) for data in others] == [None] * len(others)


def test_half_a_message_is_known_as_such() -> None:
    deframer = Deframer(10)
    assert deframer.feed(b"\0\0\0\0\5ab") == []
    assert not deframer.is_between_messages


@pytest.mark.parametrize("cut", [5, 6, 16])
def test_a_message_too_large_is_refused_by_its_first_five_bytes(cut: int) -> None:
    with pytest.raises(RpcError) as caught:
        Deframer(10).feed(framed(b"x" * 11)[:cut])
    assert caught.value.status is Status.RESOURCE_EXHAUSTED
    assert caught.value.message == "a message of 11 bytes, 10 at most: send less in each"


@pytest.mark.parametrize(("flag", "status"), [(1, Status.UNIMPLEMENTED), (2, Status.INTERNAL), (255, Status.INTERNAL)])
def test_a_message_in_another_coding_is_refused(flag: int, status: Status) -> None:
    for data in (bytes((flag, 0, 0, 0, 1)) + b"x", bytes((flag, 0, 0, 0, 9)) + b"x"):
        with pytest.raises(RpcError) as caught:
            Deframer(10).feed(data)
        assert caught.value.status is status


def test_trailers_tell_status_and_message() -> None:
    assert decoded(trailers(Status.OK, "ignored")) == {"grpc-status": "0"}
    assert decoded(trailers(Status.NOT_FOUND, "")) == {"grpc-status": "5"}
    assert decoded(trailers(Status.NOT_FOUND, "no body 17")) == {"grpc-status": "5", "grpc-message": "no body 17"}
    assert decoded(trailers(Status.UNIMPLEMENTED, ""))["grpc-accept-encoding"] == "identity"


def test_a_refusal_begins_as_grpc_or_as_http() -> None:
    assert decoded(refusal_head(200)) == {":status": "200", "content-type": "application/grpc"}
    assert decoded(refusal_head(415)) == {":status": "415"}


@given(st.text(max_size=500))
def test_a_message_survives_its_coding(message: str) -> None:
    encoded = percent_encoded(message)
    assert all(0x20 <= byte < 0x7F for byte in encoded)
    assert unquote(encoded.decode()) == message.encode("utf-8", "replace").decode()


def test_a_message_is_cut_to_what_a_field_may_hold() -> None:
    assert len(percent_encoded("€" * 10_000)) == 2048 * 9

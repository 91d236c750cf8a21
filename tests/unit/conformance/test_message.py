import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinference.conformance.message import Fields, Malformed, decode, encode, number, octets, text, varint
from kinference.wire.proto import picker_pb2 as pb


@given(st.integers(0, 2**64 - 1), st.text(max_size=300))
def test_it_writes_what_protobuf_reads(stream_id: int, tenant: str) -> None:
    request = pb.PickRequest.FromString(encode({1: stream_id, 5: tenant.encode()}))
    assert (request.body_stream_id, request.tenant) == (stream_id, tenant)


@given(st.integers(0, 2**64 - 1), st.text(max_size=300))
def test_it_reads_what_protobuf_writes(response_id: int, reason: str) -> None:
    fields = decode(pb.PickResponse(response_id=response_id, reason=reason).SerializeToString())
    assert (number(fields, 3), text(fields, 4), octets(fields, 6)) == (response_id, reason, b"")


def test_fields_of_fixed_width_are_read() -> None:
    assert decode(b"\x09" + b"8" * 8 + b"\x15" + b"4" * 4) == {1: b"8" * 8, 2: b"4" * 4}


@pytest.mark.parametrize("message", [b"\x08", b"\x0a\x05ab", b"\x0b", b"\x09abc", b"\x08" + b"\xff" * 11])
def test_what_is_no_message_is_said_to_be_none(message: bytes) -> None:
    with pytest.raises(Malformed):
        decode(message)


def test_a_field_of_the_wrong_kind_is_malformed() -> None:
    fields: Fields = {1: 5, 2: b"x", 3: b"\xff"}
    for read, field in ((octets, 1), (text, 1), (number, 2), (text, 3)):
        with pytest.raises(Malformed):
            read(fields, field)


def test_a_varint_has_seven_bits_a_byte() -> None:
    assert [varint(0), varint(127), varint(128), varint(300)] == [b"\0", b"\x7f", b"\x80\x01", b"\xac\x02"]

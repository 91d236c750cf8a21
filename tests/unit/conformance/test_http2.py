import hpack
import pytest

from kinference.conformance.case import Probe
from kinference.conformance.http2 import framed, header_block
from kinference.conformance.message import decode, encode


@pytest.mark.parametrize("length", [0, 1, 126, 127, 128, 300, 20_000])
def test_header_blocks_are_what_hpack_reads(length: int) -> None:
    fields = [("name", "v" * length), ("x" * (length or 1), "")]
    read = hpack.Decoder(1 << 20).decode(header_block(fields))
    assert [(str(name), str(value)) for name, value in read] == fields


async def test_a_call_is_answered_on_its_stream(probe: Probe) -> None:
    async with probe.raw() as connection:
        streams = [connection.call("PushBody") for _ in range(3)]
        for number, stream in enumerate(streams):
            connection.send(stream, framed(encode({1: b"x" * number})), end=True)
        answers = [await connection.finished(stream) for stream in streams]
    assert [answer.grpc_status for answer in answers] == [0, 0, 0]
    assert [decode(bytes(answer.data[5:])).get(2, 0) for answer in answers] == [0, 1, 2]


async def test_waiting_ends_when_time_is_up(probe: Probe) -> None:
    async with probe.raw() as connection:
        stream = connection.call("PushBody")
        assert not await connection.read_until(lambda: connection.answer(stream).is_over, 0.05)
        assert connection.answer(stream).grpc_status is None


async def test_a_server_that_hangs_up_is_a_connection_error(probe: Probe) -> None:
    async with probe.raw() as connection:
        connection.open_window(0, 0)  # an increment of 0 breaks the protocol
        with pytest.raises(ConnectionError, match="closed the connection"):
            await connection.read_until(lambda: False, 10)

"""A host that knows neither gRPC nor protobuf: it writes `0x0A varint bytes` itself, on an HTTP/2 library of others."""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded, TrailersReceived

from kinference.conformance.message import Fields, decode, encode
from tests.conformance.serving import Served


def varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80]) + varint(number >> 7) if number > 0x7F else bytes([number])


def framed(chunk: bytes) -> bytes:
    message = b"\x0a" + varint(len(chunk)) + chunk
    return b"\0" + len(message).to_bytes(4) + message


def chunks(data: bytes) -> Iterator[bytes]:
    """The chunks of an answer, each behind its tag and its length."""
    while data:
        message, data = data[5 : 5 + int.from_bytes(data[1:5])], data[5 + int.from_bytes(data[1:5]) :]
        assert message[0] == 0x0A
        at, length = 1, 0
        while True:
            length |= (message[at] & 0x7F) << 7 * (at - 1)
            at += 1
            if message[at - 1] < 0x80:
                break
        assert len(message) == at + length
        yield message[at:]


class Host:
    """One connection, one call at a time, blocking."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.h2 = H2Connection(H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()

    def call(self, method: str, messages: list[bytes], *more: tuple[str, str]) -> tuple[str, bytes]:
        """The gRPC status and the bytes of the answer."""
        stream = self.h2.get_next_available_stream_id()
        path = f"/kinference.v1.Picker/{method}"
        head = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", f"127.0.0.1:{self.port}")]
        self.h2.send_headers(stream, [*head, ("te", "trailers"), ("content-type", "application/grpc"), *more])
        self.answer, self.fields, self.ended = b"", dict[str, str](), False
        data = b"".join(messages)
        while data:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if room:
                self.h2.send_data(stream, data[:room])
                data = data[room:]
            else:
                self.read()
        self.h2.end_stream(stream)
        while not self.ended:
            self.read()
        return self.fields.get("grpc-status", "none"), self.answer

    def close(self) -> None:
        self.socket.close()

    def read(self) -> None:
        self.socket.sendall(self.h2.data_to_send())
        for event in self.h2.receive_data(self.socket.recv(65536)):
            if isinstance(event, DataReceived):
                self.answer += event.data or b""
                self.h2.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id or 0)
            elif isinstance(event, ResponseReceived | TrailersReceived):
                self.fields |= {str(name): str(value) for name, value in event.headers or ()}
            elif isinstance(event, StreamEnded):
                self.ended = True


def unary(fields: Fields) -> list[bytes]:
    message = encode(fields)
    return [b"\0" + len(message).to_bytes(4) + message]


def request(port: int, length: int) -> None:
    body = json.dumps({"model": "llama", "messages": [{"role": "user", "content": "hi"}], "x": "y" * length}).encode()
    with closing(Host(port)) as host:
        pieces = [framed(body[at : at + 40_000]) for at in range(0, len(body), 40_000)]
        status, reply = host.call("PushBody", pieces, ("kinference-declared-length", str(len(body))))
        assert status == "0"
        pushed = decode(reply[5:])
        assert pushed[2] == len(body)
        status, reply = host.call("Pick", unary({1: pushed[1], 5: b"acme"}))
        picked = decode(reply[5:])
        assert (status, picked[1], picked[5]) == ("0", 1, len(body))
        status, reply = host.call("PullBody", unary({1: picked[3]}))
        assert status == "0"
        assert b"".join(chunks(reply)) == body
        assert host.call("Abort", unary({1: picked[3], 2: 1})) == ("0", b"\0\0\0\0\x02\x08\x01")


@pytest.mark.parametrize("length", [10, 300, 200_000])
async def test_a_host_frames_its_chunks_itself(server: Served, length: int) -> None:
    await asyncio.to_thread(request, server.target.port, length)


async def test_a_host_behind_envoy_frames_its_chunks_itself(envoy: int) -> None:
    await asyncio.to_thread(request, envoy, 200_000)

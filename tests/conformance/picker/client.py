"""A plain grpcio client of the Picker contract with its own few lines of protobuf. It imports nothing of ours."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import grpc
from grpc import StatusCode

MIB = 1024 * 1024
OK, NO_WORKERS, BAD_REQUEST, POLICY_REJECTED = 1, 2, 4, 5
NOT_DISPATCHED, PULL_FAILED, BACKEND_UNRESOLVED, BACKEND_UNAUTHORIZED = 1, 2, 3, 4
CHAT = json.dumps({"model": "llama", "messages": [{"role": "user", "content": "hello " * 100}]}).encode()

Metadata = Sequence[tuple[str, str]]
Fields = dict[int, int | bytes]


class Server(Protocol):
    """What the fixture tells of the server: where it is, and what an operator would read off its metrics."""

    @property
    def target(self) -> str: ...
    @property
    def buffered_bytes(self) -> Callable[[], int]: ...
    @property
    def is_idle(self) -> Callable[[], bool]: ...
    @property
    def drain(self) -> Callable[[], None]: ...


# --- a few lines of protobuf --------------------------------------------------------------------


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def encode(fields: Fields) -> bytes:
    message = b""
    for number, value in fields.items():
        if isinstance(value, bytes):
            message += varint(number << 3 | 2) + varint(len(value)) + value
        else:
            message += varint(number << 3) + varint(value)
    return message


def decode(message: bytes) -> Fields:
    fields, at = Fields(), 0
    while at < len(message):
        key, at = read_varint(message, at)
        value, at = read_varint(message, at)
        if key & 7 == 2:
            fields[key >> 3], at = message[at : at + value], at + value
        else:
            fields[key >> 3] = value
    return fields


def read_varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[at]
        number, shift, at = number | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return number, at


# --- a plain client -----------------------------------------------------------------------------


@dataclass
class Picked:
    """A PickResponse."""

    fields: Fields
    outcome: int = field(init=False)
    response_id: int = field(init=False)
    total: int = field(init=False)
    reason: str = field(init=False)
    model: str = field(init=False)

    def __post_init__(self) -> None:
        self.outcome, self.response_id, self.total = (self.number(key) for key in (1, 3, 5))
        self.reason, self.model = (self.text(key) for key in (4, 6))

    def number(self, key: int) -> int:
        value = self.fields.get(key, 0)
        assert isinstance(value, int)
        return value

    def text(self, key: int) -> str:
        value = self.fields.get(key, b"")
        assert isinstance(value, bytes)
        return value.decode()


class Client:
    """Each method is one RPC, on one connection."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel

    def push_call(
        self, chunks: AsyncIterator[bytes] | Iterable[bytes], metadata: Metadata = (), timeout: float | None = None
    ) -> grpc.aio.StreamUnaryCall[bytes, bytes]:
        return self.push_raw(messages(chunks), metadata, timeout)

    def push_raw(
        self, raw: AsyncIterator[bytes], metadata: Metadata = (), timeout: float | None = None
    ) -> grpc.aio.StreamUnaryCall[bytes, bytes]:
        method: grpc.aio.StreamUnaryMultiCallable[bytes, bytes]
        method = self.channel.stream_unary("/kinference.v1.Picker/PushBody")
        return method(raw, metadata=tuple(metadata), timeout=timeout)

    async def push(self, *chunks: bytes, metadata: Metadata = ()) -> tuple[int, int]:
        reply = decode(await self.push_call(chunks, metadata))
        stream_id, total = reply.get(1, 0), reply.get(2, 0)
        assert isinstance(stream_id, int)
        assert isinstance(total, int)
        return stream_id, total

    async def pick(self, stream_id: int, fields: Fields | None = None, metadata: Metadata = ()) -> Picked:
        request = encode({1: stream_id, 5: b"acme", **(fields or {})})
        return Picked(decode(await self.unary("Pick", request, metadata)))

    async def pushed_and_picked(self, body: bytes = CHAT, fields: Fields | None = None) -> Picked:
        return await self.pick((await self.push(body))[0], fields)

    def pull_call(self, response_id: int) -> grpc.aio.UnaryStreamCall[bytes, bytes]:
        method: grpc.aio.UnaryStreamMultiCallable[bytes, bytes]
        method = self.channel.unary_stream("/kinference.v1.Picker/PullBody")
        return method(encode({1: response_id}))

    async def pull(self, response_id: int) -> list[bytes]:
        chunks = [decode(message)[1] async for message in self.pull_call(response_id)]
        return [chunk for chunk in chunks if isinstance(chunk, bytes)]

    async def first(self, response_id: int, status: int = 200) -> bool:
        return decode(await self.unary("ReportFirstToken", encode({1: response_id, 2: 12, 3: status}))) == {1: 1}

    async def final(self, response_id: int, fields: Fields | None = None) -> bool:
        request = encode({1: response_id, 2: b"llama", 3: 100, 4: 20, **(fields or {})})
        return decode(await self.unary("ReportFinalToken", request)) == {1: 1}

    async def abort(self, response_id: int, reason: int = 0) -> bool:
        request = encode({1: response_id, 2: reason, 3: b"detail", 4: b"req-1"})
        return decode(await self.unary("Abort", request)) == {1: 1}

    async def unary(self, method: str, request: bytes, metadata: Metadata = ()) -> bytes:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
        call = self.channel.unary_unary(f"/kinference.v1.Picker/{method}")
        return await call(request, metadata=tuple(metadata), timeout=30)


async def messages(chunks: AsyncIterator[bytes] | Iterable[bytes]) -> AsyncIterator[bytes]:
    if isinstance(chunks, Iterable):
        for chunk in chunks:
            yield encode({1: chunk})
    else:
        async for chunk in chunks:
            yield encode({1: chunk})


async def as_they_are(*raw: bytes) -> AsyncIterator[bytes]:
    for message in raw:
        yield message


async def status_of(call: Awaitable[object]) -> StatusCode:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    return StatusCode.OK


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - a black box signals nothing
            await asyncio.sleep(0.01)


def declared(length: object) -> Metadata:
    return [("kinference-declared-length", str(length))]


async def forever() -> AsyncIterator[bytes]:
    """A push that begins and then neither goes on nor ends."""
    yield b"begun"
    await asyncio.Event().wait()

"""The suite's own caller of the Picker service: grpcio's channel, raw messages, one method an RPC."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

import grpc
from grpc import StatusCode
from grpc.aio import StreamUnaryCall, UnaryStreamCall

from kinference.conformance import message
from kinference.conformance.claims import Unexpected
from kinference.conformance.message import Fields, decode, encode
from kinference.conformance.target import Target
from kinference.ids import Seconds

SERVICE = "/kinference.v1.Picker/"
DECLARED_LENGTH = "kinference-declared-length"
CALL_TIMEOUT: Seconds = 30.0

Metadata: TypeAlias = Sequence[tuple[str, str]]
Chunks: TypeAlias = AsyncIterator[bytes] | Iterable[bytes]


class Outcome(IntEnum):
    OK = 1
    NO_WORKERS = 2
    DEGRADED = 3
    BAD_REQUEST = 4
    POLICY_REJECTED = 5


@dataclass(frozen=True, slots=True)
class Picked:
    """A PickResponse, with its fields for what has no name here."""

    fields: Fields

    @property
    def outcome(self) -> int:
        return message.number(self.fields, 1)

    @property
    def is_choice(self) -> bool:
        return self.outcome in (Outcome.OK, Outcome.DEGRADED)

    @property
    def has_destination(self) -> bool:
        return bool({2, 7} & self.fields.keys())

    @property
    def response_id(self) -> int:
        return message.number(self.fields, 3)

    @property
    def reason(self) -> str:
        return message.text(self.fields, 4)

    @property
    def body_total_bytes(self) -> int:
        return message.number(self.fields, 5)

    @property
    def requested_model(self) -> str:
        return message.text(self.fields, 6)


class Muddled(Exception):
    """grpcio was writing when the server ended the call, and put a failure of its own in the place of the status.

    It happens to a few pushes in a thousand that are refused early, and says nothing about the server: try again.
    """


@dataclass(slots=True)
class Issued:
    """Ids that the server gave and that may still hold something."""

    stream_ids: set[int] = field(default_factory=set)
    response_ids: set[int] = field(default_factory=set)


class Client:
    """The six calls on one connection. What the server gave is kept in `issued`, so that `tidy` can hand it back."""

    def __init__(self, channel: grpc.aio.Channel, target: Target, issued: Issued) -> None:
        self.channel, self.issued = channel, issued
        self._tenant = target.names.tenant.encode()
        self._metadata = _credentials(target)

    # --- PushBody --------------------------------------------------------------------------------

    async def begin_push(
        self, *chunks: bytes, metadata: Metadata = (), timeout: Seconds | None = None
    ) -> StreamUnaryCall[bytes, bytes]:
        """A push that has sent these chunks and then neither goes on nor ends, unless the server ends it."""
        call = self._push(metadata, timeout)
        with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            for chunk in chunks:
                await call.write(encode({1: chunk}))
        return call

    async def push_chunks(self, chunks: Chunks, metadata: Metadata = ()) -> bytes:
        """A push from begin to end, each chunk in its message; the reply as it came."""
        return await self.push_messages(_messages(chunks), metadata)

    async def push_messages(self, messages: AsyncIterator[bytes], metadata: Metadata = ()) -> bytes:
        """A push of messages as they are, sound or not."""
        call = self._push(metadata, CALL_TIMEOUT)
        with suppress(asyncio.InvalidStateError):  # the server ended it early: waiting for the reply tells how
            async for one in messages:
                await call.write(one)
            await call.done_writing()
        return await call

    async def push(self, *chunks: bytes, metadata: Metadata = ()) -> tuple[int, int]:
        """A push from begin to end: its stream id, and the total that the server counted."""
        return self.pushed(await self.push_chunks(chunks, metadata))

    def pushed(self, reply: bytes) -> tuple[int, int]:
        """What a PushBodyResponse says."""
        fields = decode(reply)
        stream_id = message.number(fields, 1)
        self.issued.stream_ids.add(stream_id)
        return stream_id, message.number(fields, 2)

    # --- Pick and PullBody -----------------------------------------------------------------------

    async def pick(self, stream_id: int, fields: Fields | None = None, metadata: Metadata = ()) -> Picked:
        """`fields` are added to those of the request, or replace them."""
        request = encode({1: stream_id, 5: self._tenant, **(fields or {})})
        picked = Picked(decode(await self.unary("Pick", request, metadata)))
        self.issued.stream_ids.discard(stream_id)
        if picked.response_id:
            self.issued.response_ids.add(picked.response_id)
        return picked

    async def push_and_pick(self, body: bytes, fields: Fields | None = None, metadata: Metadata = ()) -> Picked:
        """A small body in one chunk, and the answer to its Pick."""
        return await self.pick((await self.push(body))[0], fields, metadata)

    def pull_call(self, response_id: int) -> UnaryStreamCall[bytes, bytes]:
        """A pull as it runs; each message read is a BodyChunk."""
        method: grpc.aio.UnaryStreamMultiCallable[bytes, bytes]
        method = self.channel.unary_stream(SERVICE + "PullBody")
        return method(encode({1: response_id}), metadata=self._with(()))

    async def pull(self, response_id: int) -> list[bytes]:
        """All chunks of a body."""
        return [message.octets(decode(piece), 1) async for piece in self.pull_call(response_id)]

    # --- reports and Abort -----------------------------------------------------------------------

    async def first_token(self, response_id: int, status: int = 200) -> bool:
        """Whether it was acknowledged. A negative status takes ten bytes, as protobuf has it."""
        request = encode({1: response_id, 2: 12, 3: status % 2**64})
        return bool(message.number(decode(await self.unary("ReportFirstToken", request)), 1))

    async def final_token(self, response_id: int, fields: Fields | None = None) -> bool:
        """Whether it was acknowledged."""
        request = encode({1: response_id, 2: b"served", 3: 100, 4: 20, **(fields or {})})
        return bool(message.number(decode(await self.unary("ReportFinalToken", request)), 1))

    async def abort(self, response_id: int, reason: int = 0) -> bool:
        """Whether it released something."""
        request = encode({1: response_id, 2: reason, 3: b"conformance", 4: b"conformance-1"})
        return bool(message.number(decode(await self.unary("Abort", request)), 1))

    # --- beneath and after -----------------------------------------------------------------------

    async def unary(self, method: str, request: bytes, metadata: Metadata = ()) -> bytes:
        """Any method of the service that takes one message and answers one."""
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
        call = self.channel.unary_unary(method if method.startswith("/") else SERVICE + method)
        return await call(request, metadata=self._with(metadata), timeout=CALL_TIMEOUT)

    async def tidy(self) -> None:
        """Hand back what is still held under the ids that were issued."""
        await asyncio.gather(*(status_of(self.pick(stream_id)) for stream_id in tuple(self.issued.stream_ids)))
        await asyncio.gather(*(status_of(self.abort(response_id)) for response_id in tuple(self.issued.response_ids)))

    def _push(self, metadata: Metadata, timeout: Seconds | None) -> StreamUnaryCall[bytes, bytes]:
        method: grpc.aio.StreamUnaryMultiCallable[bytes, bytes]
        method = self.channel.stream_unary(SERVICE + "PushBody")
        return method(metadata=self._with(metadata), timeout=timeout)

    def _with(self, metadata: Metadata) -> tuple[tuple[str, str], ...]:
        return (*self._metadata, *metadata)


def open_channel(target: Target) -> grpc.aio.Channel:
    """A connection of its own."""
    options = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        ("grpc.use_local_subchannel_pool", 1),  # else two channels to one address share a connection
    ]
    security = target.security
    if not security.tls:
        return grpc.aio.insecure_channel(target.address, options)
    credentials = grpc.ssl_channel_credentials(security.ca, security.key, security.certificate)
    return grpc.aio.secure_channel(target.address, credentials, options)


async def status_of(call: Awaitable[object]) -> StatusCode:
    """How a call ended. Raises Muddled where grpcio lost what the server said."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        if error.details() == "Internal error from Core":
            raise Muddled from error
        return error.code()
    return StatusCode.OK


async def read_first(call: UnaryStreamCall[bytes, bytes]) -> int:
    """Read the first chunk of a pull; its bytes."""
    piece = await call.read()
    if not isinstance(piece, bytes):
        raise Unexpected("the pull has no first chunk")
    return len(message.octets(decode(piece), 1))


async def read_to_end(call: UnaryStreamCall[bytes, bytes]) -> int:
    """Read what is left of a pull; the bytes that came."""
    total = 0
    while isinstance(piece := await call.read(), bytes):
        total += len(message.octets(decode(piece), 1))
    return total


async def as_they_are(*messages: bytes) -> AsyncIterator[bytes]:
    """Messages for `push_messages`."""
    for one in messages:
        yield one


def declared(length: object) -> Metadata:
    """The metadata that declares a body's length."""
    return [(DECLARED_LENGTH, str(length))]


async def _messages(chunks: Chunks) -> AsyncIterator[bytes]:
    if isinstance(chunks, Iterable):
        for chunk in chunks:
            yield encode({1: chunk})
    else:
        async for chunk in chunks:
            yield encode({1: chunk})


def _credentials(target: Target) -> Metadata:
    token = target.security.token
    return [("authorization", f"Bearer {token}")] if token else []

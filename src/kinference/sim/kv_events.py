"""KV-cache events over ZMQ, as vLLM publishes them: what is stored and what is removed, block by block.

A message has three frames: topic, sequence number (8 bytes, big endian), and a msgpack array [time, events, rank].
A second socket replays what a subscriber missed: it asks with the first number that it wants, and is answered with
every later batch that is still kept, then with the number -1.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import zmq
import zmq.asyncio

from kinference.ids import Seconds
from kinference.sim.events import BlocksRemoved, BlocksStored, Event
from kinference.sim.options import KvEventOptions
from kinference.sim.runner import Job
from kinference.sim.text import TOKEN_BYTES, token_ids

SEQUENCE_BYTES = 8
REPLAY_BATCHES_MAX = 10_000
QUEUE_MESSAGES_MAX = 100_000
_END_OF_REPLAY = (-1).to_bytes(SEQUENCE_BYTES, "big", signed=True)
_RANK = 0


class _Tagged(msgspec.Struct, frozen=True, tag_field="type", kw_only=True):
    """An event as a map, its kind under `type`."""


class BlockStored(_Tagged, frozen=True, tag="BlockStored"):
    block_hashes: list[int]
    parent_block_hash: int | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None = None
    medium: str | None = "GPU"
    lora_name: str | None = None
    extra_keys: list[list[str] | None] | None = None
    group_idx: int | None = 0
    kv_cache_spec_kind: str | None = "full_attention"


class BlockRemoved(_Tagged, frozen=True, tag="BlockRemoved"):
    block_hashes: list[int]
    medium: str | None = "GPU"
    group_idx: int | None = 0


class AllBlocksCleared(_Tagged, frozen=True, tag="AllBlocksCleared"):
    pass


KvEvent = BlockStored | BlockRemoved | AllBlocksCleared


def encode_batch(at: Seconds, events: Sequence[KvEvent], *, positional: bool = False) -> bytes:
    """The payload frame."""
    items = [_as_array(event) for event in events] if positional else events
    return msgspec.msgpack.encode([at, items, _RANK])


def _as_array(event: KvEvent) -> list[object]:
    return [type(event).__name__, *(getattr(event, name) for name in event.__struct_fields__)]


def translate(events: Sequence[Event], job_of: Callable[[int], Job], block_tokens: int) -> list[KvEvent]:
    """What the model did to its cache, in the publisher's words. Each removed block is an event of its own."""
    told: list[KvEvent] = []
    for event in events:
        match event:
            case BlocksStored(_, request, first, count):
                told.append(_stored(job_of(request), first, count, block_tokens))
            case BlocksRemoved(_, blocks):
                told += [BlockRemoved(block_hashes=[block]) for block in blocks]
            case _:
                pass
    return told


def _stored(job: Job, first: int, count: int, block_tokens: int) -> BlockStored:
    size = block_tokens * TOKEN_BYTES
    tokens = (job.prompt + job.output)[first * size : (first + count) * size]
    extra_keys: list[list[str] | None] = [None] * count
    if job.salt and first == 0:
        extra_keys[0] = [job.salt]
    return BlockStored(
        block_hashes=list(job.blocks[first : first + count]),
        parent_block_hash=job.blocks[first - 1] if first else None,
        token_ids=token_ids(tokens),
        block_size=block_tokens,
        extra_keys=extra_keys,
    )


class KvEventPublisher:
    """The two sockets. Publishing never waits: a subscriber that is too slow loses batches, and may ask for replay."""

    def __init__(self, options: KvEventOptions) -> None:
        self._options = options
        self._topic = options.topic.encode()
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=REPLAY_BATCHES_MAX)
        self._sequence = 0
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._publisher: zmq.Socket[bytes] | None = None
        self._replay: zmq.asyncio.Socket | None = None
        self.endpoint = self.replay_endpoint = ""

    def open(self) -> None:
        """Bind what is asked for. Raises OSError when an endpoint is taken or cannot be parsed."""
        self._context = zmq.Context()
        if self._options.endpoint:
            self._publisher = self._context.socket(zmq.PUB)
            self._publisher.set_hwm(QUEUE_MESSAGES_MAX)
            self.endpoint = _bind(self._publisher, self._options.endpoint)
        if self._options.replay_endpoint:
            self._replay = zmq.asyncio.Context(self._context).socket(zmq.ROUTER)
            self.replay_endpoint = _bind(self._replay, self._options.replay_endpoint)

    @property
    def is_open(self) -> bool:
        """Whether anybody can listen."""
        return bool(self.endpoint or self.replay_endpoint)

    def publish(self, at: Seconds, events: Sequence[KvEvent]) -> None:
        """Send one batch; an empty one is not sent."""
        if not events:
            return
        payload = encode_batch(at, events, positional=self._options.positional)
        self._kept.append((self._sequence, payload))
        frames = (self._topic, self._sequence.to_bytes(SEQUENCE_BYTES, "big"), payload)
        self._sequence += 1
        if self._publisher is not None:
            self._publisher.send_multipart(frames, zmq.NOBLOCK)

    async def serve_replay(self) -> None:
        """Answer those who missed something. Ends by being cancelled."""
        replay = self._replay
        while replay is not None:
            frames = await replay.recv_multipart()
            client, start = frames[0], frames[-1]
            if len(start) != SEQUENCE_BYTES:
                continue  # not a question that has an answer
            first = int.from_bytes(start, "big")
            for sequence, payload in list(self._kept):
                if sequence >= first:
                    number = sequence.to_bytes(SEQUENCE_BYTES, "big")
                    await replay.send_multipart((client, b"", self._topic, number, payload))
            await replay.send_multipart((client, b"", b"", _END_OF_REPLAY, b""))

    def close(self) -> None:
        """Close both sockets, dropping what was not sent."""
        for socket in (self._publisher, self._replay):
            if socket is not None:
                socket.close(linger=0)
        if self._context is not None:
            self._context.term()


def _bind(socket: zmq.Socket[Any], endpoint: str) -> str:
    try:
        socket.bind(endpoint)
    except zmq.ZMQError as error:
        raise OSError(error.errno, f"{endpoint}: {error.strerror}") from None
    bound = socket.getsockopt(zmq.LAST_ENDPOINT)
    assert isinstance(bound, bytes), "the option is a text"
    return bound.rstrip(b"\0").decode()

"""An engine's two sockets, played by the test: it says what it likes, keeps what it likes, and answers when it likes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec
import zmq
import zmq.asyncio

END = (-1).to_bytes(8, "big", signed=True)


def payload(at: float, *events: object) -> bytes:
    return msgspec.msgpack.encode([at, list(events), 0])


def stored(*names: int, parent: int | None = None, size: int = 2) -> list[object]:
    return ["BlockStored", list(names), parent, [*range(size * len(names))], size]


@dataclass
class Publisher:
    """What it publishes is kept for replay unless the test takes it out."""

    publisher: zmq.asyncio.Socket
    port: int
    replay_port: int
    kept: dict[int, bytes] = field(default_factory=dict)
    with_topic: bool = True
    is_mute: bool = False
    asked: list[int] = field(default_factory=list)
    topic: bytes = b"kv@here"

    async def publish(self, number: int, batch: bytes, *, keep: bool = True, send: bool = True) -> None:
        if keep:
            self.kept[number] = batch
        if send:
            await self.publisher.send_multipart((self.topic, number.to_bytes(8, "big"), batch))

    async def answer(self, replay: zmq.asyncio.Socket) -> None:
        while True:
            client, _, start = await replay.recv_multipart()
            first = int.from_bytes(start, "big")
            self.asked.append(first)
            if self.is_mute:
                continue
            topic = (self.topic,) if self.with_topic else ()
            for number, batch in sorted(self.kept.items()):
                if number >= first:
                    await replay.send_multipart((client, b"", *topic, number.to_bytes(8, "big"), batch))
            await replay.send_multipart((client, b"", *((b"",) if self.with_topic else ()), END, b""))


@asynccontextmanager
async def publishing(port: int = 0, replay_port: int = 0) -> AsyncIterator[Publisher]:
    context = zmq.asyncio.Context()
    publisher, replay = context.socket(zmq.XPUB), context.socket(zmq.ROUTER)
    publisher.setsockopt(zmq.XPUB_VERBOSE, 1)
    ports = []
    for socket, wanted in ((publisher, port), (replay, replay_port)):
        socket.setsockopt(zmq.LINGER, 0)
        socket.bind(f"tcp://127.0.0.1:{wanted or '*'}")
        ports.append(int(socket.getsockopt(zmq.LAST_ENDPOINT).rsplit(b":", 1)[1].rstrip(b"\0")))  # type: ignore[union-attr]
    engine = Publisher(publisher, ports[0], ports[1])
    answering = asyncio.create_task(engine.answer(replay))
    try:
        yield engine
    finally:
        answering.cancel()
        context.destroy(linger=0)

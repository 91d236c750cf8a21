"""The publisher's second socket: it is asked for what was missed, and answers with every batch that it still has."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import zmq
import zmq.asyncio

from kinference.ids import Seconds
from kinference.wire.patience import Patience

NUMBER_BYTES = 8
MESSAGE_BYTES_MAX = 4 * 1024 * 1024
QUEUE_MESSAGES_MAX = 1_000
REPLAY_IDLE_S: Seconds = 2.0
BATCHES_MAX = 100_000
"""In one answer: ten times what an engine keeps by default."""
_END = -1


class ReplayFailed(Exception):
    """The socket did not answer, or not in its protocol."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """A batch as it came, with its number."""

    number: int
    payload: bytes


def connect(context: zmq.asyncio.Context, kind: int, url: str) -> zmq.asyncio.Socket:
    """A socket to an engine that cannot fill our memory and does not hold us up at the end."""
    socket = context.socket(kind)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.IPV6, 1)
    socket.setsockopt(zmq.MAXMSGSIZE, MESSAGE_BYTES_MAX)
    socket.setsockopt(zmq.RCVHWM, QUEUE_MESSAGES_MAX)
    socket.setsockopt(zmq.HEARTBEAT_IVL, 2_000)
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 6_000)
    socket.setsockopt(zmq.RECONNECT_IVL, 200)
    socket.setsockopt(zmq.RECONNECT_IVL_MAX, 5_000)
    socket.connect(url)
    return socket


async def replay(context: zmq.asyncio.Context, url: str, first: int) -> AsyncGenerator[Numbered, None]:
    """All batches from a number on, as far as the engine still has them. Raises ReplayFailed.

    A socket of its own for each question: a late answer to an earlier one cannot be taken for this one's.
    """
    socket = connect(context, zmq.DEALER, url)
    try:
        await socket.send_multipart((b"", first.to_bytes(NUMBER_BYTES, "big")))
        for _ in range(BATCHES_MAX):
            try:
                async with Patience(REPLAY_IDLE_S):
                    frames = await socket.recv_multipart()
            except TimeoutError:
                raise ReplayFailed("the replay socket does not answer") from None
            batch = _parse(frames)
            if batch is None:
                return
            yield batch
        raise ReplayFailed("the replay socket does not come to an end")
    finally:
        socket.close()


def _parse(frames: list[bytes]) -> Numbered | None:
    """None for the end. Newer engines put the topic before the number, older ones do not."""
    if len(frames) < 3 or len(frames[-2]) != NUMBER_BYTES:  # noqa: PLR2004 - empty, number, payload
        raise ReplayFailed("the replay socket answers in another protocol")
    number = int.from_bytes(frames[-2], "big", signed=True)
    if number < _END:
        raise ReplayFailed("the replay socket answers in another protocol")
    return None if number == _END else Numbered(number, frames[-1])

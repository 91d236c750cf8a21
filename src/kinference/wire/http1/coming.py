"""What is waited for on a connection to a destination: the rest of an answer."""

from typing import Protocol

from kinference.ids import Seconds
from kinference.ports import Sink
from kinference.wire.http1.link import Link


class Answer(Protocol):
    """An answer whose head has come."""

    patience: Seconds
    """How long it may be silent."""
    link: Link | None
    """None once it was closed."""


async def next_of(answer: Answer) -> bytes:
    """The next chunk. Raises StopAsyncIteration at the end."""
    while (link := answer.link) is not None:
        if chunk := link.take():
            return chunk
        if link.reply.is_complete:
            break
        await link.more(answer.patience)
        link.check()
    raise StopAsyncIteration


async def poured(answer: Answer, sink: Sink) -> None:
    """All of it, as it comes."""
    while (link := answer.link) is not None:
        if chunk := link.take():
            if sink.take(chunk):
                continue
        elif link.reply.is_complete:
            break
        else:
            try:
                await link.pour(sink.take, answer.patience)
            finally:
                link.stop_pouring()
            link.check()
        await sink.ready()

"""A case: one claim about a server, held against it through a probe."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

from kinference.conformance.claims import expect
from kinference.conformance.client import Client, Picked, open_channel
from kinference.conformance.http2 import WINDOW_DEFAULT, RawConnection, raw_connection
from kinference.conformance.target import MIB, Need, Target


class Probe:
    """What a case works with: a client on a connection of its own, and ways to open more."""

    def __init__(self, target: Target, client: Client) -> None:
        self.target, self.client = target, client

    def chat(self, text: str = "hello", padding: int = 0) -> bytes:
        """A chat request for the model of the target."""
        return chat(self.target.names.model, text, padding)

    async def choice(self, body: bytes | None = None) -> Picked:
        """A request that was pushed and picked, and for which there is a destination."""
        picked = await self.client.push_and_pick(self.chat() if body is None else body)
        expect(picked.is_choice, f"no destination for model {picked.requested_model!r}: {picked.reason}")
        return picked

    async def large_choice(self, length: int) -> Picked:
        """The same for a body of about this length, in chunks of 1 MiB or what the server allows."""
        body, step = self.chat(padding=length), min(MIB, self.target.limits.chunk_max)
        stream_id, _ = await self.client.push(*(body[at : at + step] for at in range(0, len(body), step)))
        picked = await self.client.pick(stream_id)
        expect(picked.is_choice, f"no destination for model {picked.requested_model!r}: {picked.reason}")
        return picked

    @asynccontextmanager
    async def another_connection(self) -> AsyncIterator[Client]:
        """A client on a connection that leaving the block closes, whatever is under way on it."""
        async with open_channel(self.target) as channel:
            yield Client(channel, self.target, self.client.issued)

    def raw(self, window: int = WINDOW_DEFAULT) -> AbstractAsyncContextManager[RawConnection]:
        """A connection whose every frame the case writes itself."""
        return raw_connection(self.target, window)


def chat(model: str, text: str, padding: int = 0) -> bytes:
    """A chat request. Padding makes the body long but not the prompt, so that it fits any model's context."""
    request: dict[str, object] = {"model": model, "messages": [{"role": "user", "content": text}]}
    if padding:
        request["metadata"] = {"padding": "x" * padding}
    return json.dumps(request).encode()


Body: TypeAlias = Callable[[Probe], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Case:
    """One named case, the clauses that it holds the server to, and what it needs of a target."""

    name: str
    clauses: tuple[str, ...]
    needs: tuple[Need, ...]
    body: Body


def case(*clauses: str, needs: tuple[Need, ...] = ()) -> Callable[[Body], Case]:
    """Make a case of a coroutine function; it is named for its module and itself."""

    def declare(body: Body) -> Case:
        group = body.__module__.rpartition(".")[2]
        return Case(f"{group}.{body.__name__}".replace("_", "-"), clauses, needs, body)

    return declare

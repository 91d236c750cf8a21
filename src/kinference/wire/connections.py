"""The connections of one port, bounded in all and for each peer, so that no peer takes the whole port."""

import asyncio
import errno
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from typing import Final, Generic, TypeVar

from kinference.ids import Seconds

EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""What the system says when one more connection is too many, whoever it is to."""
LAST_WORDS: Final[Seconds] = 1.0
"""How long those that were closed have to take what was written to them."""
NETWORK_BITS = 64
"""Of an IPv6 address, which its holder cannot choose."""

Guest = TypeVar("Guest")


@dataclass(slots=True)
class Tally:
    """How many have come to one port."""

    open: int = 0
    refused: int = 0
    """Since somebody last asked: they were beyond a bound."""
    resets: Counter[str] = field(default_factory=Counter)
    """HTTP/2 streams that were reset for what their peer did, by error code; since then, too."""
    faults: Counter[str] = field(default_factory=Counter)
    """What peers did that no handler is to see; since then, too. Over HTTP/2 connections that were closed for it, by
    error code; requests that were refused, by status."""


class Connections(Generic[Guest]):
    """Those that are open, by their peers. A peer without an address, over a Unix socket, is bounded in all only."""

    def __init__(self, most: int, most_per_peer: int, tally: Tally | None = None) -> None:
        self._most, self._most_per_peer = most, most_per_peer
        self.tally = tally or Tally()
        self._peers: dict[Guest, str] = {}
        self._counts: Counter[str] = Counter()
        self._emptied = asyncio.Event()

    def __len__(self) -> int:
        return len(self._peers)

    def __iter__(self) -> Iterator[Guest]:
        return iter(self._peers)

    def admits(self, peer: str) -> bool:
        """Whether one more of this peer is within the bounds; one that is not is counted as refused."""
        has_room = len(self._peers) < self._most and (not peer or self._counts[_origin(peer)] < self._most_per_peer)
        if not has_room:
            self.tally.refused += 1
        return has_room

    def add(self, guest: Guest, peer: str) -> None:
        """Count it, within the bounds or not."""
        origin = self._peers[guest] = _origin(peer)
        self._counts[origin] += 1
        self.tally.open = len(self._peers)
        self._emptied.clear()

    def discard(self, guest: Guest) -> None:
        """It is gone, if it was counted at all."""
        origin = self._peers.pop(guest, None)
        if origin is not None:
            self.tally.open = len(self._peers)
            self._counts[origin] -= 1
            if not self._counts[origin]:
                del self._counts[origin]
            if not self._peers:
                self._emptied.set()

    async def wait_empty(self, patience: Seconds) -> None:
        """Wait until none is left, for so long."""
        if self._peers:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._emptied.wait()


def peer_of(transport: asyncio.BaseTransport) -> str:
    """The client's address; none over a Unix socket."""
    name = transport.get_extra_info("peername")
    return name[0] if isinstance(name, tuple) else ""


def _origin(peer: str) -> str:
    """What counts as one peer: an IPv4 address however it is written, the network of an IPv6 address."""
    if ":" not in peer:
        return peer
    address = ip_address(peer.partition("%")[0])
    assert isinstance(address, IPv6Address), "only those have colons"
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{int(address) >> NETWORK_BITS:x}"

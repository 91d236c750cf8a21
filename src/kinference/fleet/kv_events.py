"""Follows what engines publish of their caches, and tells the prefix index.

Each engine has a task here, and each data-parallel rank counts as one. A batch that is missing in the sequence is asked
for on the replay socket; so is the end of the sequence whenever nothing comes for a while, which shows at once a lost
last batch, an engine that hangs, and one that has started anew. What cannot be had is a gap: what we believe of that
cache is in doubt until it has been cleared or filled anew, and decisions that weigh it are DEGRADED.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

import zmq
import zmq.asyncio
from zmq.utils.monitor import recv_monitor_message

from kinference.core.fleet import CacheFeed, Endpoint, Fleet, PrefixSignal
from kinference.core.prefix.engine_blocks import BlocksCleared, BlocksRemoved, BlocksStored, EngineBlocks
from kinference.fleet.kv_batch import BatchReader, KvBatch
from kinference.fleet.kv_replay import NUMBER_BYTES, Numbered, ReplayFailed, connect, replay
from kinference.fleet.kv_sequence import KvSequence, Place
from kinference.fleet.notice import Notice
from kinference.ids import Seconds
from kinference.observe.metrics import KV_BATCHES, KV_EVENTS, KV_GAPS, KV_LAG, Metrics
from kinference.ports import Clock

QUIET_S: Seconds = 5.0
RETRY_S: Seconds = 2.0
REPLAYS_MAX: Final = 16
"""Questions in a row while each brings us further: a socket that is asked for much may drop some of it."""
_FRAMES: Final = 3
_SEVERITY: Final = (PrefixSignal.LIVE, PrefixSignal.WARMING, PrefixSignal.GAP, PrefixSignal.BROKEN)
_TOLD: Final = {
    PrefixSignal.LIVE: "tells what it caches",
    PrefixSignal.WARMING: "tells what it caches from now on; what it cached before is guessed",
    PrefixSignal.GAP: "lost some of what it told of its cache; what it caches is guessed until it is filled anew",
    PrefixSignal.BROKEN: "does not tell what it caches; that is guessed",
}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FeedParts:
    """What every feed works with."""

    fleet: Fleet
    blocks: EngineBlocks
    clock: Clock
    metrics: Metrics
    quiet: Seconds = QUIET_S
    """Without a word for so long, an engine is asked whether there was any."""


class CacheFeeds:
    """The feeds of all endpoints that publish."""

    def __init__(self, parts: FeedParts) -> None:
        self._parts = parts
        self._context: zmq.asyncio.Context | None = None

    def start(self, group: asyncio.TaskGroup, endpoint: Endpoint) -> tuple[asyncio.Task[None], ...]:
        """A task for each rank of an endpoint; none where none is configured."""
        feed = endpoint.spec.cache_feed
        if feed is None:
            return ()
        if self._context is None:
            self._context = zmq.asyncio.Context()
        signals = _Signals(self._parts.fleet, endpoint, feed.ranks)
        ranks = [RankFeed(self._parts, self._context, endpoint, rank, signals.tell) for rank in range(feed.ranks)]
        return tuple(group.create_task(rank.run()) for rank in ranks)

    def close(self) -> None:
        """Let the sockets go; the tasks have ended."""
        if self._context is not None:
            self._context.destroy(linger=0)


class _Signals:
    """An endpoint's signal is that of its worst rank."""

    def __init__(self, fleet: Fleet, endpoint: Endpoint, ranks: int) -> None:
        self._fleet, self._spec = fleet, endpoint.spec
        self._notice = Notice(endpoint.spec)
        self._ranks = [PrefixSignal.WARMING] * ranks

    def tell(self, rank: int, signal: PrefixSignal) -> None:
        self._ranks[rank] = signal
        worst = max(self._ranks, key=_SEVERITY.index)
        self._fleet.set_prefix_signal(self._spec.pool, self._spec.address, worst)
        say = self._notice.fine if worst is PrefixSignal.LIVE else self._notice.problem
        say(_TOLD[worst])


class RankFeed:
    """One publisher, from its sockets to the index."""

    def __init__(
        self,
        parts: FeedParts,
        context: zmq.asyncio.Context,
        endpoint: Endpoint,
        rank: int,
        tell: Callable[[int, PrefixSignal], None],
    ) -> None:
        assert endpoint.spec.cache_feed is not None, "only who publishes is followed"
        self._parts, self._context, self._endpoint, self._rank = parts, context, endpoint, rank
        self._feed: CacheFeed = endpoint.spec.cache_feed
        self._tell = tell
        self._reader, self._sequence = BatchReader(), KvSequence()
        self._is_synced = False
        self._doubt = PrefixSignal.WARMING
        self._renewed = 0
        """Blocks stored since the doubt began: when they would fill the cache, little of before is left in it."""

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                await self._follow()
            except zmq.ZMQError as error:
                _log.warning("KV events of %s: %s", self._endpoint.spec.address, error)
            except Exception:  # noqa: BLE001 - the root of a task that must outlive one bad batch
                _log.exception("following the KV events of an endpoint failed")
            self._say(PrefixSignal.BROKEN)
            await asyncio.sleep(RETRY_S)

    async def _follow(self) -> None:
        socket = connect(self._context, zmq.SUB, self._url(self._feed.port))
        monitor = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        try:
            socket.setsockopt(zmq.SUBSCRIBE, self._feed.topic.encode())
            poller = zmq.asyncio.Poller()
            poller.register(socket, zmq.POLLIN)
            poller.register(monitor, zmq.POLLIN)
            while True:
                ready = dict(await poller.poll(int(self._parts.quiet * 1_000)))
                if monitor in ready:
                    await self._connection((await recv_monitor_message(monitor))["event"])
                if socket in ready:
                    await self._receive(await socket.recv_multipart())
                if not ready:
                    await self._catch_up()
                await asyncio.sleep(0)  # whatever else is due goes first: a thousand batches may be waiting
        finally:
            socket.disable_monitor()
            monitor.close(linger=0)
            socket.close()

    async def _connection(self, event: int) -> None:
        if event == zmq.EVENT_DISCONNECTED:
            self._say(PrefixSignal.BROKEN)
        else:
            await self._catch_up()

    async def _receive(self, frames: list[bytes]) -> None:
        if len(frames) != _FRAMES or len(frames[1]) != NUMBER_BYTES:
            self._count("malformed")
            return
        await self._take(Numbered(int.from_bytes(frames[1], "big"), frames[2]))

    async def _take(self, numbered: Numbered) -> None:
        batch = self._reader.read(numbered.payload)
        if batch is None:
            self._count("malformed")
            return
        match self._sequence.place(numbered.number, batch.at):
            case Place.NEXT if self._is_synced:
                self._apply(numbered.number, batch)
                self._parts.metrics.time(KV_LAG, max(0.0, self._parts.clock.wall() - batch.at))
                self._say(self._doubt)
            case Place.SEEN:
                pass
            case Place.ANEW:
                self._begin()
                await self._catch_up(numbered, batch)
            case _:
                await self._catch_up(numbered, batch)

    async def _catch_up(self, numbered: Numbered | None = None, batch: KvBatch | None = None) -> None:
        """Ask for all since the last that was applied; that one too, so that another life shows. A batch that is at
        hand already is applied in the end, with or without those before it.
        """
        if self._feed.replay_port is not None:
            try:
                for _ in range(REPLAYS_MAX):
                    before = self._sequence.next
                    await self._replay()
                    reached, wanted = self._sequence.next, 0 if numbered is None else numbered.number
                    if reached == before or (reached > before and reached > wanted):
                        break
            except ReplayFailed as error:
                _log.debug("KV events of %s: %s", self._endpoint.spec.address, error)
                self._say(PrefixSignal.BROKEN)
                if numbered is None:
                    return
        if numbered is not None and batch is not None and numbered.number >= self._sequence.next:
            if numbered.number > self._sequence.next:
                self._lose()
            elif not self._is_synced:
                self._begin()  # its very first: it has just started
            self._apply(numbered.number, batch)
        self._is_synced = self._is_synced or numbered is not None or self._feed.replay_port is not None
        self._say(self._doubt)

    async def _replay(self) -> None:
        asked, found = max(0, self._sequence.next - 1), False
        began_at = self._sequence.last_at
        async with aclosing(replay(self._context, self._url(self._feed.replay_port or 0), asked)) as batches:
            async for numbered in batches:
                batch = self._reader.read(numbered.payload)
                if batch is None:
                    self._count("malformed")
                    continue
                if not found:
                    found = True
                    if self._is_another_life(numbered.number, batch, began_at):
                        self._begin()
                        return
                    if numbered.number == 0 and not self._is_synced:
                        self._begin()
                if numbered.number > self._sequence.next:
                    self._lose()
                if numbered.number >= self._sequence.next:
                    self._apply(numbered.number, batch)
                    await asyncio.sleep(0)
        if not found and (self._sequence.next or not self._is_synced):
            self._begin()  # nothing is kept there: it has published nothing in this life

    def _is_another_life(self, number: int, batch: KvBatch, last_at: Seconds) -> bool:
        """A batch that we have, by its number, and have not, by its time."""
        return number < self._sequence.next and batch.at != last_at

    def _begin(self) -> None:
        """The engine's cache was empty at the beginning of the sequence that starts now."""
        self._sequence.restart()
        self._parts.blocks.begin(self._endpoint.slot, self._rank)
        self._doubt, self._is_synced = PrefixSignal.LIVE, True

    def _lose(self) -> None:
        """Some batches cannot be had any more."""
        self._parts.blocks.lose(self._endpoint.slot, self._rank)
        self._doubt = PrefixSignal.GAP if self._is_synced else PrefixSignal.WARMING
        self._renewed, self._is_synced = 0, True
        self._parts.metrics.count(KV_GAPS, self._endpoint.spec.address)

    def _apply(self, number: int, batch: KvBatch) -> None:
        spec, metrics = self._endpoint.spec, self._parts.metrics
        for event in batch.events:
            self._parts.blocks.apply(self._endpoint.slot, self._rank, event)
            match event:
                case BlocksStored(hashes):
                    self._renewed += len(hashes)
                    metrics.count(KV_EVENTS, spec.address, "stored", amount=len(hashes))
                case BlocksRemoved(hashes):
                    metrics.count(KV_EVENTS, spec.address, "removed", amount=len(hashes))
                case BlocksCleared():
                    self._doubt = PrefixSignal.LIVE
                    metrics.count(KV_EVENTS, spec.address, "cleared")
        self._sequence.applied(number, batch.at)
        self._count("applied")
        if batch.malformed:
            self._count("malformed")
        seen = self._endpoint.observation
        if seen is not None and seen.kv_blocks and self._renewed * self._feed.ranks >= seen.kv_blocks:
            self._doubt = PrefixSignal.LIVE

    def _count(self, outcome: str) -> None:
        self._parts.metrics.count(KV_BATCHES, self._endpoint.spec.address, outcome)

    def _say(self, signal: PrefixSignal) -> None:
        self._tell(self._rank, signal)

    def _url(self, port: int) -> str:
        host = self._endpoint.spec.address.rpartition(":")[0]
        return f"tcp://{host}:{port + self._rank}"

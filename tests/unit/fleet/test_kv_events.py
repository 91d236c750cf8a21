"""One publisher after another, over real sockets, into an index."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from kinference.core.fleet import CacheFeed, Endpoint, Fleet, Observation, PrefixSignal
from kinference.core.prefix.engine_blocks import EngineBlocks
from kinference.core.prefix.index import PrefixIndex
from kinference.fleet import kv_replay
from kinference.fleet.kv_events import CacheFeeds, FeedParts
from kinference.observe.metrics import Metrics
from tests.unit.fleet.fakes import POOL, ManualClock, only, spec
from tests.unit.fleet.publisher import Publisher, payload, publishing, stored

BROKEN, GAP, LIVE, WARMING = PrefixSignal.BROKEN, PrefixSignal.GAP, PrefixSignal.LIVE, PrefixSignal.WARMING


class Followed:
    """An endpoint whose events are read."""

    def __init__(self, feed: CacheFeed) -> None:
        self.fleet, self.index, self.metrics = Fleet(), PrefixIndex(), Metrics()
        self.blocks = EngineBlocks(self.index)
        self.fleet.set_pool(POOL, [replace(spec("127.0.0.1:1"), cache_feed=feed)])
        self.feeds = CacheFeeds(FeedParts(self.fleet, self.blocks, ManualClock(), self.metrics, quiet=0.05))

    @property
    def endpoint(self) -> Endpoint:
        return only(self.fleet)

    @property
    def state(self) -> tuple[PrefixSignal, int]:
        return self.endpoint.prefix_signal, self.blocks.tracked(0)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110 - a fleet is plain state and has no event to wait for
                await asyncio.sleep(0.005)

    async def becomes(self, signal: PrefixSignal, tracked: int) -> None:
        try:
            await self.until(lambda: self.state == (signal, tracked))
        except TimeoutError:
            raise AssertionError(f"it stays {self.state}") from None


@asynccontextmanager
async def following(feed: CacheFeed) -> AsyncIterator[Followed]:
    followed = Followed(feed)
    async with asyncio.TaskGroup() as group:
        tasks = followed.feeds.start(group, followed.endpoint)
        try:
            yield followed
        finally:
            for task in tasks:
                task.cancel()
    followed.feeds.close()


@asynccontextmanager
async def followed_engine(*, with_replay: bool = True, **kept: bytes) -> AsyncIterator[tuple[Followed, Publisher]]:
    """An engine that has published these, by `b` and a number, before we come; our subscription has reached it."""
    async with publishing() as engine:
        engine.kept = {int(name[1:]): batch for name, batch in kept.items()}
        async with following(CacheFeed(engine.port, engine.replay_port if with_replay else None)) as followed:
            await engine.publisher.recv()
            yield followed, engine


async def test_what_was_published_before_we_came_is_replayed_and_the_rest_follows() -> None:
    async with followed_engine(b0=payload(1.0, stored(1, 2)), b1=payload(2.0, stored(3, parent=2))) as (
        followed,
        engine,
    ):
        await followed.becomes(LIVE, 3)
        await engine.publish(2, payload(3.0, ["BlockRemoved", [3]]))
        await followed.becomes(LIVE, 2)
        assert b'kinference_kv_blocks_total{endpoint="127.0.0.1:1",what="stored"} 3.0' in followed.metrics.exposition()


async def test_a_first_batch_that_was_lost_leaves_what_was_sent_meanwhile() -> None:
    async with followed_engine() as (followed, engine):
        await followed.becomes(LIVE, 0)
        followed.index.insert(0, [11, 12])
        await engine.publish(0, payload(1.0, stored(1)), send=False)
        await followed.becomes(LIVE, 1)
        assert followed.index.held(0) == 2


async def test_an_engine_that_has_published_nothing_is_known_in_full() -> None:
    async with followed_engine() as (followed, engine):
        await followed.becomes(LIVE, 0)
        await engine.publish(0, payload(1.0, stored(1)))
        await followed.becomes(LIVE, 1)


async def test_a_lost_batch_is_asked_for() -> None:
    async with followed_engine(b0=payload(1.0, stored(1))) as (followed, engine):
        await followed.becomes(LIVE, 1)
        await engine.publish(1, payload(2.0, stored(2, parent=1)), send=False)
        await engine.publish(2, payload(3.0, stored(3, parent=2)))
        await followed.becomes(LIVE, 3)


async def test_a_lost_last_batch_is_found_when_it_has_been_quiet() -> None:
    async with followed_engine(b0=payload(1.0, stored(1))) as (followed, engine):
        await followed.becomes(LIVE, 1)
        await engine.publish(1, payload(2.0, stored(2, parent=1)), send=False)
        await followed.becomes(LIVE, 2)


async def test_a_batch_that_cannot_be_had_any_more_is_a_gap_until_the_cache_is_cleared() -> None:
    async with followed_engine(b0=payload(1.0, stored(1))) as (followed, engine):
        await followed.becomes(LIVE, 1)
        engine.kept.clear()
        await engine.publish(2, payload(3.0, stored(3, parent=1)))
        await followed.becomes(GAP, 2)
        assert not followed.blocks.is_complete(0, 0)
        await engine.publish(3, payload(4.0, ["AllBlocksCleared"]))
        await followed.becomes(LIVE, 0)
        assert followed.blocks.is_complete(0, 0)
        assert b'kinference_kv_gaps_total{endpoint="127.0.0.1:1"} 1.0' in followed.metrics.exposition()


async def test_a_gap_is_over_when_the_cache_has_been_filled_anew() -> None:
    async with followed_engine(b0=payload(1.0, stored(1))) as (followed, engine):
        await followed.becomes(LIVE, 1)
        followed.fleet.observe(POOL, followed.endpoint.spec.address, Observation(0.0, 0, 0, kv_blocks=4))
        engine.kept.clear()
        await engine.publish(5, payload(3.0, stored(3, 4, 5)))
        await followed.becomes(GAP, 4)
        await engine.publish(6, payload(4.0, stored(6, 7, 8, 9)))
        await followed.becomes(LIVE, 8)


async def test_an_engine_that_ran_long_before_we_came_is_warming_until_it_has_been_filled_anew() -> None:
    async with followed_engine(b7=payload(1.0, stored(1))) as (followed, engine):
        await followed.becomes(WARMING, 1)
        followed.fleet.observe(POOL, followed.endpoint.spec.address, Observation(0.0, 0, 0, kv_blocks=3))
        await engine.publish(8, payload(2.0, stored(2, 3, 4, parent=1)))
        await followed.becomes(LIVE, 4)


@pytest.mark.parametrize("batches", [1, 3])
async def test_an_engine_that_starts_anew_has_an_empty_cache(batches: int) -> None:
    async with followed_engine(b0=payload(1.0, stored(1)), b1=payload(2.0, stored(2, parent=1))) as (followed, engine):
        await followed.becomes(LIVE, 2)
        followed.index.insert(0, [11, 12])
        engine.kept.clear()
        for number in range(batches):
            await engine.publish(number, payload(10.0 + number, stored(20 + number)), send=False)
        await followed.becomes(LIVE, batches)
        assert followed.index.held(0) == 0


async def test_a_new_life_shows_in_the_first_batch_of_it_too() -> None:
    async with followed_engine(b0=payload(1.0, stored(1)), b1=payload(2.0, stored(2, parent=1))) as (followed, engine):
        await followed.becomes(LIVE, 2)
        engine.kept.clear()
        await engine.publish(0, payload(10.0, stored(20)))
        await followed.becomes(LIVE, 1)


async def test_an_engine_that_does_not_answer_is_broken_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_replay, "REPLAY_IDLE_S", 0.05)
    async with followed_engine(b0=payload(1.0, stored(1))) as (followed, engine):
        await followed.becomes(LIVE, 1)
        engine.is_mute = True
        await followed.becomes(BROKEN, 1)
        engine.is_mute = False
        await followed.becomes(LIVE, 1)


async def test_an_engine_that_goes_away_is_broken_and_read_again_when_it_is_back() -> None:
    async with publishing() as engine:
        feed = CacheFeed(engine.port, engine.replay_port)
        engine.kept = {0: payload(1.0, stored(1))}
        follower = following(feed)
        followed = await follower.__aenter__()
        await followed.becomes(LIVE, 1)
    try:
        await followed.becomes(BROKEN, 1)
        async with publishing(feed.port, feed.replay_port or 0) as engine:
            engine.kept = {0: payload(9.0, stored(1)), 1: payload(9.5, stored(2))}
            await followed.becomes(LIVE, 2)
    finally:
        await follower.__aexit__(None, None, None)


async def test_without_a_replay_socket_only_a_sequence_from_its_start_is_known_in_full() -> None:
    async with followed_engine(with_replay=False) as (followed, engine):
        await followed.becomes(WARMING, 0)
        await engine.publish(0, payload(1.0, stored(1)))
        await followed.becomes(LIVE, 1)
        await engine.publish(2, payload(2.0, stored(3)))
        await followed.becomes(GAP, 2)
    async with followed_engine(with_replay=False) as (followed, engine):
        await engine.publish(9, payload(1.0, stored(1)))
        await followed.becomes(WARMING, 1)
        await engine.publish(10, payload(2.0, stored(2)))
        await followed.becomes(WARMING, 2)


async def test_repetitions_are_applied_once() -> None:
    batch = payload(1.0, stored(1, 2))
    async with followed_engine(b0=batch) as (followed, engine):
        await followed.becomes(LIVE, 2)
        await engine.publish(1, payload(2.0, ["BlockRemoved", [2]]))
        await engine.publish(0, batch)
        await engine.publish(2, payload(3.0, stored(3)))
        await followed.becomes(LIVE, 2)


async def test_messages_that_make_no_sense_are_counted_and_do_no_harm() -> None:
    async with followed_engine(b0=payload(1.0, stored(1))) as (followed, engine):
        await followed.becomes(LIVE, 1)
        for frames in ((b"", b"short", b"x"), (b"alone",), (b"", (1).to_bytes(8, "big"), b"\xc1")):
            await engine.publisher.send_multipart(frames)
        await engine.publish(1, payload(2.0, ["BlockStored", 1], stored(2)))
        await followed.becomes(LIVE, 2)
        assert (
            b'kinference_kv_batches_total{endpoint="127.0.0.1:1",outcome="malformed"} 4.0'
            in followed.metrics.exposition()
        )


async def test_an_endpoint_is_as_well_known_as_the_worst_of_its_ranks() -> None:
    async with publishing() as engine:
        feed = CacheFeed(engine.port, engine.replay_port, ranks=2)
        engine.kept = {0: payload(1.0, stored(1))}
        async with following(feed) as followed:
            await followed.until(lambda: followed.blocks.tracked(0) == 1)
            assert followed.endpoint.prefix_signal is not LIVE


async def test_an_endpoint_without_a_feed_is_not_followed() -> None:
    fleet, index = Fleet(), PrefixIndex()
    fleet.set_pool(POOL, [spec()])
    feeds = CacheFeeds(FeedParts(fleet, EngineBlocks(index), ManualClock(), Metrics()))
    async with asyncio.TaskGroup() as group:
        assert feeds.start(group, only(fleet)) == ()
    feeds.close()

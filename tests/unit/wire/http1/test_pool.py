"""Which connection is used again, and which is not."""

import asyncio

from kinference.wire.http1.link import Link
from kinference.wire.http1.pool import IDLE_MAX, Pool
from tests.unit.wire.http1.linked import opened


def fresh(origin: str = "http://a:1") -> Link:
    return opened(origin)[0]


def pool_of(*links: Link) -> Pool:
    pool = Pool()
    for link in links:
        pool.give(link)
    return pool


def taken(pool: Pool, times: int, origin: str = "http://a:1") -> list[object]:
    return [pool.take(origin) for _ in range(times)]


async def test_the_one_used_last_is_used_first_and_only_for_its_origin() -> None:
    first, second, other = fresh(), fresh(), fresh("http://b:1")
    pool = pool_of(first, second, other)
    assert len(pool) == 3
    assert taken(pool, 3) == [second, first, None]
    assert taken(pool, 1, "http://b:1") == [other]


async def test_one_that_has_closed_meanwhile_is_passed_over() -> None:
    good, closed = fresh(), fresh()
    pool = pool_of(good, closed)
    closed.close()
    assert taken(pool, 1) == [good]


async def test_h14_what_cannot_be_kept_is_not_and_what_is_kept_has_its_time() -> None:
    bad, good = fresh(), fresh()
    bad.close()
    assert len(pool_of(bad, good)) == 1
    left = good.deadline - asyncio.get_running_loop().time()
    assert IDLE_MAX - 1 < left <= IDLE_MAX < 5


async def test_closing_closes_what_is_idle_and_what_is_in_use() -> None:
    pairs = [opened() for _ in range(3)]
    pool = pool_of(*(link for link, _ in pairs[:2]))
    assert pool.take("http://a:1") is pairs[1][0]
    pool.use(pairs[2][0])
    pool.close()
    assert [transport.is_aborted for _, transport in pairs] == [True, True, True]


async def test_what_was_dropped_or_given_back_is_in_use_no_longer() -> None:
    (dropped, is_dropped), (given, is_given) = opened(), opened()
    pool = Pool()
    for link in (dropped, given):
        pool.use(link)
    pool.drop(dropped)
    pool.give(given)
    assert (is_dropped.is_aborted, is_given.is_aborted) == (True, False)
    assert pool.take("http://a:1") is given


async def test_what_has_ended_is_forgotten_also_of_origins_that_nobody_asks_again() -> None:
    links = [fresh(f"http://{number // 2}:1") for number in range(20)]
    pool = pool_of(*links)
    for link in links[1:]:
        link.connection_lost(None)
    assert (len(pool), list(pool.origins)) == (1, ["http://0:1"])
    assert taken(pool, 2, "http://0:1") == [links[0], None]
    pool.give(links[0])
    links[0].connection_lost(None)
    assert list(pool.origins) == []

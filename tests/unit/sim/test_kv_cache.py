from kinference.sim.kv_cache import BlockHash, KvCache


def chain(*numbers: int) -> list[BlockHash]:
    return [BlockHash(number) for number in numbers]


def fill(cache: KvCache, blocks: list[BlockHash]) -> list[BlockHash]:
    """What a request does whose prompt is these blocks; returns what was evicted for it."""
    hit = cache.leading(blocks, len(blocks))
    cache.hold(blocks[:hit])
    evicted = cache.take(len(blocks) - hit)
    cache.name(blocks[hit:])
    return evicted


def test_an_empty_cache_hits_nothing() -> None:
    cache = KvCache(4)
    assert cache.leading(chain(1, 2), 2) == 0
    assert (cache.used, cache.free, cache.named) == (0, 4, 0)


def test_released_blocks_stay_until_their_room_is_needed() -> None:
    cache = KvCache(4)
    fill(cache, chain(1, 2, 3))
    cache.release(chain(1, 2, 3), 0)
    assert cache.used == 0
    assert cache.leading(chain(1, 2, 3, 4), 4) == 3
    assert cache.take(1) == []
    assert cache.take(1) == chain(3)


def test_the_least_recently_used_prefix_goes_first_and_its_tail_before_its_head() -> None:
    cache = KvCache(6)
    for blocks in (chain(1, 2, 3), chain(11, 12, 13)):
        fill(cache, blocks)
        cache.release(blocks, 0)
    fill(cache, chain(1, 2, 3))
    cache.release(chain(1, 2, 3), 0)
    assert cache.take(5) == chain(13, 12, 11, 3, 2)


def test_a_block_in_use_is_never_evicted() -> None:
    cache = KvCache(3)
    fill(cache, chain(1, 2))
    assert cache.free == 1
    assert cache.take(1) == []
    assert BlockHash(1) in cache
    assert cache.free == 0


def test_a_shared_block_is_used_until_the_last_one_lets_go() -> None:
    cache = KvCache(4)
    fill(cache, chain(1, 2))
    fill(cache, chain(1, 2, 3))
    assert cache.used == 3
    cache.release(chain(1, 2), 0)
    assert cache.used == 3
    cache.release(chain(1, 2, 3), 0)
    assert cache.used == 0


def test_a_block_computed_twice_is_kept_once() -> None:
    cache = KvCache(4)
    cache.take(2)
    cache.take(2)
    assert cache.name(chain(1, 2)) == 2
    assert cache.name(chain(1, 2)) == 0
    assert cache.used == 2
    assert cache.name([]) == 0


def test_only_the_new_part_of_a_chain_counts_as_stored() -> None:
    cache = KvCache(8)
    fill(cache, chain(1, 2))
    cache.take(3)
    assert cache.name(chain(1, 2, 3)) == 1


def test_reset_forgets_all_but_refuses_while_blocks_are_in_use() -> None:
    cache = KvCache(4)
    fill(cache, chain(1, 2))
    assert not cache.reset()
    cache.release(chain(1, 2), 0)
    assert cache.reset()
    assert cache.named == 0


def test_idle_blocks_are_counted_among_those_about_to_be_held() -> None:
    cache = KvCache(4)
    fill(cache, chain(1))
    fill(cache, chain(11, 12))
    cache.release(chain(11, 12), 0)
    assert cache.idle_among(chain(1, 11, 12)) == 2

"""The prefix index: match, leaf-first eviction, rollback, forgetting."""

from kinference.core.prefix.index import DEFAULT_CAPACITY, PrefixIndex

STRIDE = 64
PATH = list(range(1_000, 1_000 + 10 * STRIDE))
ALL = 0b1111


def test_it_answers_how_many_leading_blocks_each_slot_holds() -> None:
    index = PrefixIndex()
    for slot, depth in ((0, 1), (1, STRIDE), (2, STRIDE + 5)):
        index.insert(slot, PATH[:depth])
    assert index.match(PATH, ALL) == {0: 1, 1: STRIDE, 2: STRIDE + 5}
    assert index.match(PATH, 0b0100) == {2: STRIDE + 5}
    assert index.match([], ALL) == {}
    assert index.match([7, *PATH], ALL) == {}


def test_a_slot_that_holds_everything_matches_to_the_end() -> None:
    index = PrefixIndex()
    index.insert(3, PATH)
    assert index.match(PATH[: STRIDE + 1], ALL) == {3: STRIDE + 1}
    assert index.match(PATH, ALL) == {3: len(PATH)}


def test_eviction_takes_the_leaves_of_what_was_used_longest_ago() -> None:
    index = PrefixIndex()
    index.resize(0, 10)
    index.insert(0, [1, 2, 3, 4, 5])
    index.insert(0, [1, 2, 6, 7, 8])
    index.insert(0, [21, 22, 23])
    assert index.match([1, 2, 3, 4, 5], 1) == {0: 4}
    assert index.match([1, 2, 6, 7, 8], 1) == {0: 5}
    assert index.held(0) == 10


def test_a_prompt_longer_than_the_cache_keeps_its_head() -> None:
    index = PrefixIndex()
    index.resize(0, 3)
    index.insert(0, [1, 2, 3, 4, 5])
    assert index.match([1, 2, 3, 4, 5], 1) == {0: 3}


def test_shrinking_a_cache_evicts_at_once() -> None:
    index = PrefixIndex()
    assert index.capacity(0) == DEFAULT_CAPACITY
    index.insert(0, [1, 2, 3, 4])
    index.resize(0, 2)
    assert index.match([1, 2, 3, 4], 1) == {0: 2}
    assert len(index) == 2


def test_rollback_takes_back_what_it_added_and_leaves_what_was_there() -> None:
    index = PrefixIndex()
    index.insert(0, [1, 2])
    insertion = index.insert(0, [1, 2, 3, 4])
    assert (insertion.known, insertion.touched) == (2, 1)
    index.rollback(insertion)
    index.rollback(insertion)
    assert index.match([1, 2, 3, 4], 1) == {0: 2}
    assert len(index) == 2


def test_rollback_spares_what_a_later_prompt_relies_on() -> None:
    index = PrefixIndex()
    insertion = index.insert(0, [1, 2, 3, 4])
    index.insert(0, [1, 2, 9])
    index.rollback(insertion)
    assert index.match([1, 2, 3, 4], 1) == {0: 2}
    assert index.match([1, 2, 9], 1) == {0: 3}


def test_an_empty_endpoint_lists_nothing() -> None:
    index = PrefixIndex()
    insertions = [index.insert(0, [one, one + 1, one + 2]) for one in range(1, 300, 3)]
    for insertion in insertions:
        index.rollback(insertion)
    assert (index.held(0), len(index)) == (0, 0)
    assert [generation.joined for generation in index._holdings[0].generations] == [[]]
    index.insert(0, [7, 8])
    assert index.match([7, 8], 1) == {0: 2}


def test_rollback_leaves_other_slots_alone() -> None:
    index = PrefixIndex()
    insertion = index.insert(0, [1, 2])
    index.insert(1, [1, 2])
    index.rollback(insertion)
    assert index.match([1, 2], ALL) == {1: 2}


def test_rollback_after_eviction_or_forgetting_is_harmless() -> None:
    index = PrefixIndex()
    index.resize(0, 3)
    insertion = index.insert(0, [1, 2, 3])
    index.insert(0, [7, 8])
    index.rollback(insertion)
    assert index.match([1, 2, 3], 1) == {}
    index.forget(0)
    index.rollback(insertion)
    assert len(index) == 0


def test_a_forgotten_slot_holds_nothing() -> None:
    index = PrefixIndex()
    index.insert(0, [1, 2])
    index.insert(1, [1, 2, 3])
    index.forget(1)
    index.forget(1)
    assert index.match([1, 2, 3], ALL) == {0: 2}
    assert (index.held(0), index.held(1), len(index)) == (2, 0, 2)


def test_the_total_bounds_all_slots_together() -> None:
    index = PrefixIndex(total_capacity=100)
    for slot in range(10):
        index.insert(slot, list(range(slot * 1_000, slot * 1_000 + 80)))
    for slot in range(10):
        index.insert(slot, list(range(slot * 1_000, slot * 1_000 + 80)))
    assert len(index) <= 100


def test_a_measured_miss_drops_what_the_engine_must_have_evicted_before() -> None:
    index = PrefixIndex()
    index.resize(0, 10)
    index.insert(0, [1, 2, 3])
    index.insert(0, [4, 5])
    index.insert(0, [6, 7])
    insertion = index.insert(0, [4, 5, 8])
    index.correct(insertion, cached=0)
    assert index.match([1, 2, 3], 1) == {}
    assert index.match([6, 7], 1) == {0: 2}
    assert index.match([4, 5, 8], 1) == {0: 3}


def test_a_confirmed_hit_corrects_nothing() -> None:
    index = PrefixIndex()
    index.insert(0, [1, 2])
    insertion = index.insert(0, [1, 2, 3])
    index.correct(insertion, cached=2)
    assert index.match([1, 2, 3], 1) == {0: 3}
    index.forget(0)
    index.correct(insertion, cached=0)


def test_a_block_that_came_back_within_a_generation_is_evicted_once() -> None:
    index = PrefixIndex()
    index.resize(0, 100)
    for _ in range(2):
        index.rollback(index.insert(0, [1, 2, 3]))
    index.insert(0, [1, 2, 3])
    index.resize(0, 1)
    assert index.match([1, 2, 3], 1) == {0: 1}
    index.insert(0, [1, 2, 3])
    index.forget(0)
    assert len(index) == 0


def test_what_is_used_again_outlives_what_is_not_over_many_generations() -> None:
    index = PrefixIndex()
    index.resize(0, 64)
    hot = [1, 2, 3, 4]
    for number in range(1, 200):
        index.insert(0, hot)
        index.insert(0, [number * 100 + step for step in range(8)])
        assert index.match(hot, 1) == {0: 4}
        assert index.held(0) <= 64
    assert index.match([100], 1) == {}
    assert index.match([198 * 100], 1) == {0: 1}


def test_only_hot_blocks_for_ever_stay_bounded() -> None:
    index = PrefixIndex()
    index.resize(0, 64)
    paths = [[start * 100 + step for step in range(8)] for start in range(1, 7)]
    for turn in range(500):
        index.insert(0, paths[turn % len(paths)])
    assert all(index.match(path, 1) == {0: 8} for path in paths)
    assert sum(len(one.joined) for one in index._holdings[0].generations) < 1_000


def test_what_an_engine_tells_of_is_added_after_the_block_before_it() -> None:
    index = PrefixIndex()
    index.add(0, 2, 1)
    assert index.held(0) == 0
    index.add(0, 1, 0)
    index.add(0, 2, 1)
    index.add(0, 2, 1)
    assert index.match([1, 2, 3], ALL) == {0: 2}


def test_what_an_engine_tells_of_is_bounded_like_the_rest() -> None:
    index = PrefixIndex()
    index.resize(0, 3)
    for block in range(1, 10):
        index.add(0, block, block - 1)
    assert index.held(0) == 3


def test_what_an_engine_drops_is_gone_there_and_nowhere_else() -> None:
    index = PrefixIndex()
    for slot in (0, 1):
        index.insert(slot, [1, 2, 3])
    index.drop(0, [3, 2, 2, 99])
    index.drop(7, [1])
    assert index.match([1, 2, 3], ALL) == {0: 1, 1: 3}


def test_a_prompt_that_is_sent_again_closes_the_gap_that_an_engine_left() -> None:
    index = PrefixIndex()
    index.insert(0, [1, 2, 3, 4])
    index.drop(0, [2])
    index.insert(0, [1, 2, 3, 4, 5])
    index.resize(0, 2)
    index.drop(0, [1, 2])
    assert len(index) == index.held(0)


def test_the_oldest_generation_is_known_without_looking_at_each_of_its_blocks() -> None:
    index = PrefixIndex()
    index.resize(0, 64)
    paths = [[start * 100 + step for step in range(7)] for start in range(1, 9)]
    holding, sifted, left = index._holding(0), 0, 0
    for turn in range(500):
        insertion = index.insert(0, paths[turn * turn % 7 if turn % 40 else 7])
        if turn % 90 == 89:
            index.rollback(insertion)
        assert holding.oldest() == holding.listed(0)
        sifted += holding.is_sifted
        left += bool(holding.left)
    assert sifted > 300
    assert left > 10


def test_who_is_told_of_by_its_engine_has_no_order_to_rely_on() -> None:
    index = PrefixIndex()
    index.resize(0, 64)
    index.add(0, 1, 0)
    for number in range(1, 30):
        index.insert(0, [number * 100 + step for step in range(4)])
    index.add(0, 2, 1)
    index.insert(0, [1, 2, 3])
    for number in range(30, 42):
        index.insert(0, [number * 100 + step for step in range(4)])
    assert index.match([1, 2, 3], 1) == {0: 3}

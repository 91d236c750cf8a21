"""Who begins like one that leaves, and by how much."""

from kinference.core.alike import FOLLOWING_MAX, Alike


def test_who_misses_a_block_that_is_held_from_now_on_is_told_how_much_is_shared() -> None:
    alike = Alike()
    for number, blocks in enumerate([[1, 2, 3], [1, 2, 4, 5], [7, 8], [1, 9]]):
        alike.add(number, blocks, 0)
    assert alike.follow([1, 2, 4]) == [(0, 2), (1, 3), (3, 1)]


def test_from_then_on_the_next_block_is_the_one_that_is_missing() -> None:
    alike = Alike()
    alike.add(0, [1, 2, 3, 4], 0)
    assert [alike.follow(blocks) for blocks in ([1, 2], [1, 2], [1, 2, 3, 4], [1, 2, 3, 4])] == [
        [(0, 2)],
        [],
        [(0, 4)],
        [],
    ]
    assert len(alike) == 0


def test_what_is_held_already_is_missed_by_nobody() -> None:
    alike = Alike()
    alike.add(0, [1, 2], 2)
    alike.add(1, [], 0)
    alike.add(2, [1, 2, 3], 2)
    assert len(alike) == 1
    assert alike.follow([1, 2]) == []
    assert alike.follow([1, 2, 3]) == [(2, 3)]


def test_who_is_dropped_is_told_of_no_more_and_leaves_nothing() -> None:
    alike = Alike()
    for number in (0, 1):
        alike.add(number, [1, 2], 0)
    alike.drop(0)
    alike.drop(0)
    assert alike.follow([1]) == [(1, 1)]
    alike.drop(1)
    assert len(alike) == 0
    assert alike.follow([1, 2]) == []


def test_many_are_told_of_in_portions() -> None:
    alike = Alike()
    for number in range(FOLLOWING_MAX + 5):
        alike.add(number, [1, 2], 0)
    assert [len(alike.follow([1])) for _ in range(3)] == [FOLLOWING_MAX, 5, 0]

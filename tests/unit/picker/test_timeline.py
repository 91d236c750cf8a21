import sys

from kinference.picker.timeline import Timeline


def test_the_deadline_is_that_of_the_key_that_began_first() -> None:
    line: Timeline[int] = Timeline(10.0)
    assert line.deadline() is None
    line.start(1, 100.0)
    line.start(2, 105.0)
    assert line.deadline() == 110.0


def test_a_key_that_begins_anew_goes_to_the_end() -> None:
    line: Timeline[int] = Timeline(10.0)
    line.start(1, 100.0)
    line.start(2, 105.0)
    line.start(1, 106.0)
    assert line.deadline() == 115.0
    assert list(line.pop_due(115.0)) == [2]
    assert (1 in line, 2 in line, len(line)) == (True, False, 1)


def test_a_key_is_due_at_its_deadline_and_not_before() -> None:
    line: Timeline[int] = Timeline(10.0)
    line.start(1, 100.0)
    assert list(line.pop_due(109.9)) == []
    assert list(line.pop_due(110.0)) == [1]


def test_what_is_not_taken_stays_due() -> None:
    line: Timeline[int] = Timeline(1.0)
    for key in range(5):
        line.start(key, 0.0)
    due = line.pop_due(9.0)
    assert [next(due), next(due)] == [0, 1]
    assert list(line.pop_due(9.0)) == [2, 3, 4]


def test_a_stopped_key_is_never_due_and_an_unknown_one_is_left_alone() -> None:
    line: Timeline[int] = Timeline(1.0)
    line.start(1, 0.0)
    line.stop(1)
    line.stop(2)
    assert list(line.pop_due(9.0)) == []


def test_finding_the_next_costs_the_same_however_many_went_before() -> None:
    line: Timeline[int] = Timeline(0.0)
    for key in range(200_000):
        line.start(key, 0.0)
    assert sum(1 for _ in line.pop_due(0.0)) == 200_000


def test_the_oldest_key_is_known_by_when_it_began() -> None:
    line: Timeline[int] = Timeline(1.0)
    assert line.oldest_since(9.0) is None
    assert line.pop_oldest() is None
    line.start(1, 5.0)
    line.start(2, 6.0)
    assert line.oldest_since(4.9) is None
    assert line.oldest_since(5.0) == 1
    assert line.pop_oldest() == 1
    assert len(line) == 1


def test_packing_gives_back_the_table_and_keeps_the_order() -> None:
    line: Timeline[int] = Timeline(10.0)
    for key in range(1000):
        line.start(key, 100.0 + key)
    for key in range(998):
        line.stop(key)
    large = sys.getsizeof(line._began)
    line.pack()
    assert sys.getsizeof(line._began) < large / 10
    assert list(line.pop_due(9999.0)) == [998, 999]

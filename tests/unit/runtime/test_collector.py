"""What the garbage collector is told."""

import gc
from collections.abc import Iterator

import pytest

from kinference.runtime.collector import at_rest, settle


@pytest.fixture
def as_it_was() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


@pytest.mark.usefixtures("as_it_was")
def test_what_is_there_is_left_alone_and_the_young_are_looked_through_less_often_but_fewer_at_once() -> None:
    usual, middle, oldest = gc.get_threshold()
    settle()
    assert gc.get_freeze_count() > 10_000
    assert gc.get_threshold()[0] > usual
    assert gc.get_threshold()[1] < middle
    assert gc.get_threshold()[2] == oldest


def test_it_rests_for_a_while_and_goes_on_whatever_happens() -> None:
    def fail() -> None:
        assert not gc.isenabled()
        raise KeyError

    with pytest.raises(KeyError), at_rest():
        fail()
    assert gc.isenabled()

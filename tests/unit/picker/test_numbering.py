from random import Random

from kinference.picker.numbering import IdSource, draw_id


class Loaded(Random):
    """Dice that fall as they are told."""

    def __init__(self, *falls: int) -> None:
        super().__init__()
        self._falls = list(falls)

    def getrandbits(self, k: int, /) -> int:
        assert k == 64
        return self._falls.pop(0)


def test_zero_is_never_drawn() -> None:
    assert draw_id(Loaded(0, 0, 7)) == 7


def test_an_id_in_use_is_drawn_again() -> None:
    assert draw_id(Loaded(5, 6, 8), {5}, {6: "tombstone"}) == 8


def test_the_source_says_which_id_it_is() -> None:
    assert draw_id(Random(1)) == draw_id(Random(1)) != draw_id(Random(2))


def test_ids_come_by_the_batch_and_each_once() -> None:
    source = IdSource()
    drawn = [draw_id(source) for _ in range(1000)]
    assert len(set(drawn)) == 1000
    assert all(0 < number < 2**64 for number in drawn)
    assert max(drawn).bit_length() > 60
    assert source.getrandbits(8) < 256

from random import Random

from kinference.picker.numbering import draw_id


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

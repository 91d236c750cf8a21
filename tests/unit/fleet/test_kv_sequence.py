from kinference.fleet.kv_sequence import OLD_MAX, KvSequence, Place


def after(number: int, at: float) -> KvSequence:
    sequence = KvSequence()
    sequence.applied(number, at)
    return sequence


def test_a_sequence_begins_at_zero_and_goes_on_by_one() -> None:
    sequence = KvSequence()
    assert sequence.place(0, 1.0) is Place.NEXT
    sequence.applied(0, 1.0)
    assert (sequence.place(1, 2.0), sequence.next) == (Place.NEXT, 1)


def test_a_number_beyond_the_next_has_others_before_it() -> None:
    assert after(5, 1.0).place(7, 2.0) is Place.AHEAD


def test_a_repetition_is_told_from_a_new_life_by_its_time() -> None:
    sequence = after(5, 10.0)
    assert sequence.place(5, 10.0) is Place.SEEN
    assert sequence.place(3, 9.0) is Place.SEEN
    assert sequence.place(3, 10.5) is Place.ANEW


def test_an_engine_whose_clock_went_back_is_found_out_in_the_end() -> None:
    sequence = after(5_000, 10.0)
    places = [sequence.place(number, 1.0) for number in range(OLD_MAX + 1)]
    assert set(places[:-1]) == {Place.SEEN}
    assert places[-1] is Place.ANEW


def test_a_new_life_begins_at_zero() -> None:
    sequence = after(5, 10.0)
    sequence.restart()
    assert sequence.place(0, 1.0) is Place.NEXT

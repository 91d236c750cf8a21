from kinference.fleet.discovery.place import Place, step
from kinference.ids import Address

A, B, C = (Address(f"10.0.0.{n}:8000") for n in (1, 2, 3))


def known(*places: Place) -> dict[Address, Place]:
    return {place.address: place for place in places}


def test_what_is_told_is_the_whole_set() -> None:
    assert step(known(Place(A), Place(B)), [Place(C), Place(B)]).places == (Place(B), Place(C))


def test_who_takes_nothing_new_is_kept_and_not_added() -> None:
    taken = step(known(Place(A)), [Place(A, is_open=False), Place(B, is_open=False)])
    assert taken.places == (Place(A, is_open=False),)


def test_another_pod_at_an_address_is_another_engine() -> None:
    taken = step(known(Place(A, life="old")), [Place(A, life="new")])
    assert taken.places == (Place(A, life="new"),)
    assert taken.anew == frozenset({A})


def test_another_pod_that_is_not_ready_yet_takes_the_place_of_nobody() -> None:
    assert step(known(Place(A, life="old")), [Place(A, is_open=False, life="new")]).places == ()


def test_of_two_pods_at_an_address_the_one_that_serves_counts() -> None:
    told = [Place(A, is_open=False, life="old"), Place(A, life="new")]
    assert step(known(Place(A, life="old")), told).places == (Place(A, life="new"),)


def test_whoever_was_without_a_name_is_taken_for_who_is_there_now() -> None:
    assert not step(known(Place(A)), [Place(A, life="new")]).anew


def test_where_there_is_no_room_for_all_those_that_are_known_stay() -> None:
    taken = step(known(Place(C)), [Place(A), Place(B), Place(C)], places_max=2)
    assert (taken.places, taken.left_out) == ((Place(A), Place(C)), 1)

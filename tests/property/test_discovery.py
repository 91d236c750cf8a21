"""Whatever a source tells, and in whatever order, a pool stays a set that the fleet can follow."""

from contextlib import suppress
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from kinference.core.fleet import EndpointSpec, Fleet
from kinference.fleet.discovery.kubernetes.objects import read_pod
from kinference.fleet.discovery.kubernetes.watched import Expired, Lines, Senseless, Watched
from kinference.fleet.discovery.place import Place, step
from kinference.fleet.discovery.pool import DiscoveredPool
from kinference.ids import Address, ObjectRef
from tests.unit.fleet.discovery.kubernetes.cluster_objects import bookmark, event, failure, listed, pod

POOL = ObjectRef("default", "p")
ADDRESSES = [Address(f"10.0.0.{n}:80") for n in range(6)]
places = st.builds(Place, st.sampled_from(ADDRESSES), st.booleans(), st.sampled_from(["", "a", "b"]))
told_sets = st.lists(places, max_size=8)


@given(told_sets, told_sets, st.integers(1, 6))
def test_a_step_keeps_to_what_is_told(before: list[Place], told: list[Place], places_max: int) -> None:
    known = {place.address: place for place in step({}, before).places}
    taken = step(known, told, places_max)
    addresses = [place.address for place in taken.places]
    assert addresses == sorted(set(addresses))
    assert len(addresses) <= places_max
    assert set(taken.places) <= set(told)
    assert all(place.is_open or place.address in known for place in taken.places)
    open_ones = {place.address for place in told if place.is_open}
    assert not taken.left_out or len(addresses) == places_max
    assert taken.left_out or open_ones <= set(addresses)
    assert taken.anew <= known.keys() & set(addresses)


@given(told_sets, st.randoms(use_true_random=False), told_sets)
def test_the_order_of_what_is_told_does_not_matter(before: list[Place], random: "object", told: list[Place]) -> None:
    known = {place.address: place for place in step({}, before).places}
    shuffled = list(told)
    random.shuffle(shuffled)  # type: ignore[attr-defined] # Hypothesis' Random has no type of its own
    assert step(known, shuffled) == step(known, told)


@given(told_sets, told_sets)
def test_the_same_word_twice_changes_nothing_the_second_time(before: list[Place], told: list[Place]) -> None:
    first = step({place.address: place for place in step({}, before).places}, told)
    again = step({place.address: place for place in first.places}, told)
    assert (again.places, again.anew) == (first.places, frozenset())


@given(st.lists(told_sets, max_size=8))
def test_the_fleet_is_what_was_told_last_and_whoever_stays_keeps_its_place(sets: list[list[Place]]) -> None:
    fleet = Fleet()
    pool = DiscoveredPool(fleet, EndpointSpec(POOL, Address("")))
    known: dict[Address, Place] = {}
    for told in sets:
        slots = {one.spec.address: one.slot for one in fleet.endpoints()}
        expected = step(known, told)
        pool.take(told)
        known = {place.address: place for place in expected.places}
        assert {one.spec.address: not one.draining for one in fleet.endpoints()} == {
            address: place.is_open for address, place in known.items()
        }
        for one in fleet.endpoints():
            before = slots.get(one.spec.address)
            assert before is None or (before == one.slot) == (one.spec.address not in expected.anew)


@given(st.lists(st.binary(max_size=12)), st.data())
def test_lines_do_not_depend_on_where_the_stream_is_cut(pieces: list[bytes], data: st.DataObject) -> None:
    whole = b"\n".join(pieces) + b"\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    lines, found = Lines(), []
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        found += lines.feed(whole[start:end])
    assert found == [line for line in whole.split(b"\n") if line.strip()]


@given(st.binary(max_size=64), st.data())
def test_whatever_an_api_sends_is_read_or_refused(noise: bytes, data: st.DataObject) -> None:
    line = data.draw(st.sampled_from([event("ADDED", pod()), bookmark("9"), failure(410), listed(pod())]))
    at = data.draw(st.integers(0, len(line)))
    sent = line[:at] + noise + line[data.draw(st.integers(at, len(line))) :]
    watched = Watched(partial(read_pod, ports=(80,)))
    with suppress(Senseless, Expired):
        watched.happened(sent)
    with suppress(Senseless):
        watched.replace([sent])
    assert all(place.address for place in watched.places)

from dataclasses import replace

from kinference.core.fleet import CacheFeed, Fleet
from kinference.fleet.discovery.place import Place
from kinference.fleet.discovery.pool import DiscoveredPool
from kinference.ids import Address
from tests.unit.fleet.fakes import HERE, POOL, fleet_of, only, spec

THERE = Address("10.0.0.2:8000")
TEMPLATE = spec("", names=("m",))


def pool_of(fleet: Fleet) -> DiscoveredPool:
    return DiscoveredPool(fleet, TEMPLATE)


def states(fleet: Fleet) -> dict[str, tuple[bool, bool]]:
    return {one.spec.address: (one.ready, one.draining) for one in fleet.endpoints()}


def test_every_endpoint_is_as_the_pool_is_configured() -> None:
    fleet = Fleet()
    pool_of(fleet).take([Place(HERE)])
    assert only(fleet).spec == replace(TEMPLATE, address=HERE)


def test_what_stays_keeps_its_state_and_what_is_gone_is_forgotten() -> None:
    fleet = Fleet()
    pool = pool_of(fleet)
    pool.take([Place(HERE), Place(THERE)])
    fleet.set_ready(POOL, HERE, True)
    pool.take([Place(HERE)])
    assert states(fleet) == {HERE: (True, False)}


def test_the_same_set_again_is_no_change_of_the_fleet() -> None:
    fleet = Fleet()
    pool = pool_of(fleet)
    assert pool.take([Place(HERE, life="a")]) is not None
    version = fleet.version
    assert pool.take([Place(HERE, life="a")]) is None
    assert fleet.version == version


def test_a_pod_that_ends_drains_and_one_that_is_ready_again_takes_requests_again() -> None:
    fleet = Fleet()
    pool = pool_of(fleet)
    pool.take([Place(HERE)])
    pool.take([Place(HERE, is_open=False)])
    assert only(fleet).draining
    pool.take([Place(HERE)])
    assert not only(fleet).draining


def test_what_an_operator_drains_is_the_operators_to_bring_back() -> None:
    fleet = Fleet()
    pool = pool_of(fleet)
    pool.take([Place(HERE)])
    fleet.set_draining(POOL, HERE, True)
    pool.take([Place(HERE, is_open=False)])
    pool.take([Place(HERE)])
    assert only(fleet).draining


def test_whoever_follows_another_source_does_not_wait_for_this_one_to_end_a_drain() -> None:
    fleet = Fleet()
    pool = pool_of(fleet)
    pool.take([Place(HERE), Place(THERE)])
    fleet.set_draining(POOL, THERE, True)
    pool.take([Place(HERE, is_open=False), Place(THERE, is_open=False)])
    pool.release()
    assert states(fleet) == {HERE: (False, False), THERE: (False, True)}


def test_another_pod_at_the_address_starts_cold() -> None:
    fleet = Fleet()
    pool = pool_of(fleet)
    pool.take([Place(HERE, life="old")])
    before = only(fleet)
    fleet.set_ready(POOL, HERE, True)
    pool.take([Place(HERE, is_open=False, life="old")])
    pool.take([Place(HERE, life="new")])
    after = only(fleet)
    assert after.generation > before.generation
    assert (after.ready, after.draining) == (False, False)


def test_endpoints_that_a_reload_brought_stay_until_the_source_tells_otherwise() -> None:
    fleet = fleet_of(spec(), spec(THERE))
    fleet.set_ready(POOL, HERE, True)
    pool_of(fleet).take([Place(HERE, life="a")])
    assert states(fleet) == {HERE: (True, False)}


def test_a_new_configuration_of_the_pool_is_for_all_of_them_and_they_keep_their_state() -> None:
    fleet = Fleet()
    pool = pool_of(fleet)
    pool.take([Place(HERE)])
    fleet.set_ready(POOL, HERE, True)
    generation = only(fleet).generation
    pool.respecify(replace(TEMPLATE, models=("n",)))
    pool.take([Place(HERE)])
    assert only(fleet).models == {"n"}
    assert (only(fleet).ready, only(fleet).generation) == (True, generation)


def test_each_engine_of_a_pod_publishes_above_the_one_before() -> None:
    fleet = Fleet()
    pool = DiscoveredPool(fleet, replace(TEMPLATE, cache_feed=CacheFeed(5557, 6557, ranks=2)))
    pool.take([Place(HERE), Place(THERE, rank=1)])
    assert [one.spec.cache_feed for one in fleet.endpoints()] == [CacheFeed(5557, 6557, 2), CacheFeed(5559, 6559, 2)]
    pool.respecify(replace(TEMPLATE, cache_feed=CacheFeed(7000)))
    assert [one.spec.cache_feed for one in fleet.endpoints()] == [CacheFeed(7000), CacheFeed(7001)]

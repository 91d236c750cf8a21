"""The fleet's state: identity, slots, generations, order."""

from dataclasses import replace

from kinference.core.fleet import BackendSpec, Endpoint, EndpointSpec, Fleet, Observation
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import Api, Engine

POOL = ObjectRef("default", "a")
OTHER = ObjectRef("default", "b")
ONE, TWO, SIX = Address("10.0.0.1:8000"), Address("10.0.0.2:8000"), Address("[fd00::1]:8000")


def spec(address: Address, pool: ObjectRef = POOL) -> EndpointSpec:
    return EndpointSpec(pool, address)


def fleet_of(*addresses: Address) -> Fleet:
    fleet = Fleet()
    fleet.set_pool(POOL, [spec(address) for address in addresses])
    return fleet


def named(fleet: Fleet, address: Address) -> Endpoint:
    return next(endpoint for endpoint in fleet.endpoints() if endpoint.spec.address == address)


def test_endpoints_come_ordered_by_pool_and_address() -> None:
    fleet = Fleet()
    fleet.set_pool(OTHER, [spec(ONE, OTHER)])
    fleet.set_pool(POOL, [spec(TWO), spec(SIX), spec(ONE)])
    assert [(one.spec.pool, one.spec.address) for one in fleet.endpoints()] == [
        (POOL, ONE),
        (POOL, TWO),
        (POOL, SIX),
        (OTHER, ONE),
    ]
    assert fleet.pools() == (POOL, OTHER)


def test_an_unchanged_endpoint_is_left_alone() -> None:
    fleet = fleet_of(ONE)
    fleet.set_ready(POOL, ONE, ready=True)
    before = named(fleet, ONE)
    fleet.set_pool(POOL, [spec(ONE), spec(TWO)])
    assert named(fleet, ONE) is before
    assert before.ready


def test_a_changed_spec_keeps_the_life_and_takes_the_new_values() -> None:
    fleet = fleet_of(ONE)
    before = named(fleet, ONE)
    fleet.set_pool(POOL, [replace(spec(ONE), weight=3, engine=Engine.SGLANG, models=("m",))])
    after = named(fleet, ONE)
    assert (after.slot, after.generation) == (before.slot, before.generation)
    assert (after.spec.weight, after.engine, after.models) == (3, Engine.SGLANG, frozenset({"m"}))


def test_an_address_that_comes_back_is_a_new_generation() -> None:
    fleet = fleet_of(ONE)
    first = named(fleet, ONE).generation
    fleet.set_pool(POOL, [])
    fleet.set_pool(POOL, [spec(ONE)])
    assert named(fleet, ONE).generation > first
    assert not named(fleet, ONE).ready


def test_a_slot_is_reused_only_after_it_was_taken_for_forgetting() -> None:
    fleet = fleet_of(ONE)
    fleet.set_pool(POOL, [spec(TWO)])
    assert named(fleet, TWO).slot == 1
    assert fleet.take_retired_slots() == (0,)
    assert fleet.take_retired_slots() == ()
    fleet.set_pool(POOL, [spec(TWO), spec(SIX)])
    assert named(fleet, SIX).slot == 0


def test_a_removed_pool_is_gone_and_an_empty_one_is_served() -> None:
    fleet = fleet_of(ONE)
    fleet.set_pool(OTHER, [])
    fleet.remove_pool(POOL)
    fleet.remove_pool(POOL)
    assert fleet.pools() == (OTHER,)
    assert fleet.endpoints() == ()


def test_every_change_of_who_can_serve_grows_the_version_and_a_repeat_does_not() -> None:
    fleet = fleet_of(ONE)
    versions = [fleet.version]
    for _ in range(2):
        fleet.set_ready(POOL, ONE, ready=True)
        fleet.set_draining(POOL, ONE, draining=True)
        fleet.set_models(POOL, ONE, ["m"], 4096)
        fleet.set_engine(POOL, ONE, Engine.VLLM)
        versions.append(fleet.version)
    assert versions[1] == versions[0] + 4
    assert versions[2] == versions[1]


def test_configured_models_and_engine_are_not_overruled() -> None:
    fleet = Fleet()
    fleet.set_pool(POOL, [replace(spec(ONE), models=("mine",), engine=Engine.VLLM)])
    fleet.set_models(POOL, ONE, ["theirs"], 100)
    fleet.set_engine(POOL, ONE, Engine.SGLANG)
    endpoint = named(fleet, ONE)
    assert (endpoint.models, endpoint.max_model_tokens, endpoint.engine) == (frozenset({"mine"}), 100, Engine.VLLM)


def test_news_of_an_unknown_endpoint_is_ignored() -> None:
    fleet = fleet_of(ONE)
    fleet.set_ready(OTHER, ONE, ready=True)
    fleet.set_draining(POOL, TWO, draining=True)
    fleet.set_models(POOL, TWO, ["m"])
    fleet.set_engine(POOL, TWO, Engine.VLLM)
    fleet.observe(POOL, TWO, Observation(0.0, 1, 1))
    assert fleet.take_observed() == ()
    assert not named(fleet, ONE).ready


def test_a_restart_shows_in_start_time_or_block_count() -> None:
    fleet = fleet_of(ONE)
    generations = []
    for started, blocks in ((None, None), (1.0, 100), (1.0, 100), (2.0, 100), (2.0, 200), (None, 200)):
        fleet.observe(POOL, ONE, Observation(0.0, 0, 0, kv_blocks=blocks, started_at=started))
        generations.append(named(fleet, ONE).generation)
    assert [later - generations[0] for later in generations] == [0, 0, 0, 1, 2, 2]


def test_scraped_endpoints_are_handed_over_once() -> None:
    fleet = fleet_of(ONE, TWO)
    fleet.observe(POOL, TWO, Observation(0.0, 1, 1))
    fleet.observe(POOL, TWO, Observation(1.0, 1, 1))
    assert [endpoint.spec.address for endpoint in fleet.take_observed()] == [TWO]
    assert fleet.take_observed() == ()


def test_an_endpoint_that_left_is_not_handed_over() -> None:
    fleet = fleet_of(ONE)
    fleet.observe(POOL, ONE, Observation(0.0, 1, 1))
    fleet.remove_pool(POOL)
    assert fleet.take_observed() == ()


def test_backends_come_ordered_by_name() -> None:
    fleet = Fleet()
    specs = [BackendSpec(ObjectRef("default", name), Api.OPENAI_CHAT, {}) for name in ("z", "a")]
    fleet.set_backends(specs)
    assert [one.ref.name for one in fleet.backends()] == ["a", "z"]

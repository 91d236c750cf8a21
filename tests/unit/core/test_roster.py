"""The roster: in step with the fleet, one life at a time."""

import pytest

from kinference.core.fleet import BackendSpec, Endpoint, EndpointSpec, Fleet, Observation
from kinference.core.policy import TargetKind
from kinference.core.prefix.engine_blocks import BlocksStored, EngineBlocks, LinkedPrompt
from kinference.core.prefix.hashing import BLOCK_BYTES
from kinference.core.prefix.index import PrefixIndex
from kinference.core.prices import FREE, Price, PricedModel
from kinference.core.rates import BACKEND_BASE_MS
from kinference.core.roster import ADAPTERS_LOADED, MODELS_MAX, Destination, ModelTraits, Roster
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import Api

POOL = ObjectRef("default", "pool")
ONE, TWO = Address("h1:1"), Address("h2:1")


def roster_of(*addresses: Address) -> tuple[Fleet, PrefixIndex, Roster]:
    fleet, index = Fleet(), PrefixIndex()
    fleet.set_pool(POOL, [EndpointSpec(POOL, address, models=("m",)) for address in addresses])
    roster = Roster(fleet, index, EngineBlocks(index))
    roster.sync()
    return fleet, index, roster


def test_it_tells_changes_of_who_can_serve_from_mere_scrapes() -> None:
    fleet, _, roster = roster_of(ONE)
    assert not roster.sync()
    fleet.observe(POOL, ONE, Observation(0.0, 3, 1))
    assert not roster.sync()
    assert roster.endpoints[0].load.waiting == 3
    fleet.set_ready(POOL, ONE, ready=True)
    assert roster.sync()


def test_a_destination_lives_as_long_as_its_generation() -> None:
    fleet, index, roster = roster_of(ONE, TWO)
    first, second = roster.endpoints
    index.insert(0, [1, 2])
    fleet.set_pool(POOL, [EndpointSpec(POOL, TWO, models=("m",))])
    fleet.set_pool(POOL, [EndpointSpec(POOL, one, models=("m",)) for one in (ONE, TWO)])
    roster.sync()
    assert roster.endpoints[0] is not first
    assert roster.endpoints[1] is second
    assert index.held(0) == 0


def test_a_restarted_engine_forgets_prefixes_and_rates() -> None:
    fleet, index, roster = roster_of(ONE)
    before = roster.endpoints[0]
    index.insert(0, [1, 2])
    for started in (1.0, 2.0):
        fleet.observe(POOL, ONE, Observation(0.0, 0, 0, started_at=started))
    roster.sync()
    assert roster.endpoints[0] is not before
    assert index.held(0) == 0


def test_the_engines_cache_size_bounds_what_it_is_believed_to_hold() -> None:
    fleet, index, roster = roster_of(ONE)
    fleet.observe(POOL, ONE, Observation(0.0, 0, 0, kv_blocks=1_000, block_tokens=16))
    roster.sync()
    assert index.capacity(0) == 1_000 * 16 * 4 // BLOCK_BYTES


def test_backends_keep_their_state_and_a_new_specification_closes_the_circuit() -> None:
    fleet, _, roster = roster_of()
    ref = ObjectRef("default", "openai")
    fleet.set_backends([BackendSpec(ref, Api.OPENAI_CHAT, {"m": "x"})])
    roster.sync()
    backend = roster.backends[0]
    backend.circuit.reject("no credential", 0.0)
    fleet.set_backends([BackendSpec(ref, Api.OPENAI_CHAT, {"m": "x"})])
    roster.sync()
    assert roster.backends[0] is backend
    assert not backend.circuit.closed
    fleet.set_backends([BackendSpec(ref, Api.OPENAI_CHAT, {"m": "y"})])
    roster.sync()
    assert roster.backends[0] is backend
    assert backend.circuit.closed


def test_cold_rates_follow_their_pool_and_backends_start_slow() -> None:
    fleet, _, roster = roster_of(ONE, TWO)
    fleet.set_backends([BackendSpec(ObjectRef("default", "openai"), Api.OPENAI_CHAT, {})])
    roster.sync()
    first, second = (roster.rates(one, "m") for one in roster.endpoints)
    assert (first.typical, first.factor) == (second.typical, second.factor)
    assert roster.rates(roster.endpoints[0], "m") is first
    assert roster.rates(roster.backends[0], "m").at(0) == BACKEND_BASE_MS


def test_what_is_known_of_an_idle_endpoint_fades_with_time_and_without_any_scrape() -> None:
    _, _, roster = roster_of(ONE, TWO)
    slow, fast = (roster.rates(one, "m") for one in roster.endpoints)
    slow.learn(1_000, 5_000.0)
    for _ in range(20):
        fast.learn(1_000, 50.0)
    before = slow.at(1_000)
    roster.relax(now=60.0)
    faded = slow.at(1_000)
    assert faded < before
    roster.relax(now=60.5)
    assert slow.at(1_000) == faded, "not at every decision"


def test_what_is_known_of_a_busy_endpoint_stays() -> None:
    _, _, roster = roster_of(ONE, TWO)
    busy, fast = (roster.rates(one, "m") for one in roster.endpoints)
    roster.endpoints[0].load.requests = 1
    busy.learn(1_000, 5_000.0)
    for _ in range(20):
        fast.learn(1_000, 50.0)
    before = busy.at(1_000)
    roster.relax(now=60.0)
    assert busy.at(1_000) == before


def test_model_names_without_end_are_bounded() -> None:
    _, _, roster = roster_of(ONE)
    kept = roster.traits("kept")
    for number in range(MODELS_MAX - 1):
        roster.traits(f"m{number}")
    assert roster.forgotten == 0
    roster.traits("one more")
    assert roster.forgotten == 1
    assert roster.traits("kept") is not kept


def test_the_first_counts_weigh_more_than_a_guess() -> None:
    traits = ModelTraits()
    traits.learn_counts(prompt_bytes=1_000, prompt_tokens=1_000, completion_tokens=20)
    assert traits.bytes_per_token == pytest.approx(1.0)
    traits.learn_counts(prompt_bytes=3_000, prompt_tokens=1_000, completion_tokens=20)
    assert traits.bytes_per_token == pytest.approx(2.0)


def test_the_first_prompts_to_compute_weigh_more_than_a_guess() -> None:
    traits = ModelTraits()
    for tokens in (60_000, 20_000):
        traits.learn_uncached(tokens)
    assert traits.uncached_tokens == pytest.approx(40_000.0)


def test_traits_learn_from_the_engines_counts_and_shrug_off_nonsense() -> None:
    traits = ModelTraits()
    for _ in range(200):
        traits.learn_counts(prompt_bytes=3_000, prompt_tokens=1_000, completion_tokens=20)
        traits.learn_uncached(100)
    assert traits.bytes_per_token == pytest.approx(3.0, rel=0.01)
    assert traits.output_tokens == pytest.approx(20.0, rel=0.01)
    assert traits.uncached_tokens == pytest.approx(100.0, rel=0.01)
    traits.learn_counts(prompt_bytes=0, prompt_tokens=0, completion_tokens=0)
    traits.learn_counts(prompt_bytes=1, prompt_tokens=2**60, completion_tokens=2**60)
    assert 2.5 < traits.bytes_per_token < 3.0
    assert traits.output_tokens < 20 * 10


def test_trust_in_hits_follows_what_the_engine_confirms() -> None:
    _, _, roster = roster_of(ONE)
    destination = roster.endpoints[0]
    destination.learn_hit(0, 0)
    assert destination.hit_trust == 1.0
    for _ in range(30):
        destination.learn_hit(1_000, 0)
    assert destination.hit_trust < 0.01
    for _ in range(30):
        destination.learn_hit(1_000, 5_000)
    assert 0.99 < destination.hit_trust <= 1.0


def test_our_own_engines_cost_nothing_unless_said_and_a_backend_nothing_is_known_of_has_no_price() -> None:
    prices = (PricedModel("m", Price(1.0, 2.0)),)
    for priced, expected in (((), (FREE, None)), (prices, (prices[0].price, prices[0].price))):
        endpoint = Endpoint(EndpointSpec(POOL, Address("h:1"), prices=priced), 0, 1)
        local = Destination(TargetKind.POOL, POOL, "h", endpoint)
        remote = Destination(
            TargetKind.BACKEND, POOL, "b", backend=BackendSpec(POOL, Api.OPENAI_CHAT, {}, prices=priced)
        )
        assert (local.price("m"), remote.price("m")) == expected
        assert (local.price("n"), remote.price("n")) == (FREE, None)


def test_an_adapter_is_loaded_once_it_was_used_and_until_others_take_its_room() -> None:
    fleet, _, roster = roster_of(ONE)
    names = [f"a{number}" for number in range(ADAPTERS_LOADED + 1)]
    fleet.set_models(POOL, ONE, ["m", *names], adapters=names)
    roster.sync()
    (one,) = roster.endpoints
    assert (one.is_loaded("m"), one.is_loaded("a0")) == (True, False)
    for name in names[:ADAPTERS_LOADED]:
        one.use_adapter(name)
    one.use_adapter("a0")
    one.use_adapter("m")
    one.use_adapter(names[-1])
    assert [name for name in names if not one.is_loaded(name)] == ["a1"]


def test_an_engine_tells_which_adapters_it_has_in_use_and_how_many_fit() -> None:
    fleet, _, roster = roster_of(ONE)
    fleet.set_models(POOL, ONE, ["m", "a", "b"], adapters=["a", "b"])
    fleet.observe(POOL, ONE, Observation(0.0, 0, 1, adapters=("a", "stranger"), adapters_max=1))
    roster.sync()
    (one,) = roster.endpoints
    assert (one.is_loaded("a"), one.is_loaded("b")) == (True, False)
    one.use_adapter("b")
    assert (one.is_loaded("a"), one.is_loaded("b")) == (False, True)


def test_a_restart_that_the_events_told_of_first_leaves_what_they_told_since() -> None:
    fleet = Fleet()
    fleet.set_pool(POOL, [EndpointSpec(POOL, ONE, models=("m",))])
    index = PrefixIndex()
    engine_blocks = EngineBlocks(index)
    roster = Roster(fleet, index, engine_blocks)
    roster.sync()
    fleet.observe(POOL, ONE, Observation(0.0, 0, 0, started_at=1.0))
    engine_blocks.begin(0, 0)
    engine_blocks.apply(0, 0, BlocksStored((7,), None, [1, 2], 2, ()))
    engine_blocks.link(LinkedPrompt([11], BLOCK_BYTES, [1, 2]))
    fleet.observe(POOL, ONE, Observation(1.0, 0, 0, started_at=2.0))
    roster.sync()
    assert index.match([11], 1) == {0: 1}


def test_whoever_is_away_drains_or_is_ejected_cannot_be_used() -> None:
    fleet, _, roster = roster_of(ONE)
    (one,) = roster.endpoints
    assert not one.is_usable(0.0)
    fleet.set_ready(POOL, ONE, ready=True)
    assert one.is_usable(0.0)
    fleet.set_draining(POOL, ONE, draining=True)
    assert not one.is_usable(0.0)
    fleet.set_draining(POOL, ONE, draining=False)
    one.circuit.reject("gone", 0.0)
    assert not one.is_usable(0.0)
    assert one.is_usable(1e3)
    fleet.set_pool(POOL, [])
    assert not one.is_usable(1e3)


def test_a_backend_can_be_used_until_it_is_ejected() -> None:
    assert Destination(TargetKind.BACKEND, POOL, "backend").is_usable(0.0)

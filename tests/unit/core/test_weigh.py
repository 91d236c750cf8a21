"""The columns of a case."""

from dataclasses import replace
from random import Random

import pytest

from kinference.core.candidates import Group
from kinference.core.cost import REQUEST_TOKENS
from kinference.core.fleet import Endpoint, EndpointSpec
from kinference.core.ledger import SCRAPE_FADES_S
from kinference.core.policy import TargetKind
from kinference.core.prefix.hashing import BLOCK_BYTES, chain_seed, hash_prompt
from kinference.core.prefix.index import PrefixIndex
from kinference.core.prices import Price, PricedModel
from kinference.core.rates import Typical, cold_rates
from kinference.core.request import Request
from kinference.core.roster import Destination, ModelTraits
from kinference.core.weigh import (
    HOUR_MS,
    ROOM_KNOWN_S,
    Prompt,
    adapter_column,
    expected_output,
    look_up,
    make_case,
    price_column,
    prompt_tokens,
)
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import Api

REF = ObjectRef("default", "pool")
TEXT = Random(1).randbytes(10 * BLOCK_BYTES)


def group_of(*models: str) -> Group:
    group = Group()
    for slot, model in enumerate(models):
        endpoint = Endpoint(EndpointSpec(REF, Address(f"h{slot}:1")), slot, 1)
        destination = Destination(TargetKind.POOL, REF, f"h{slot}", endpoint)
        group.add(destination, model, cold_rates(Typical()), group.traits.get(model, ModelTraits()))
    return group


def request(output: int | None = None) -> Request:
    return Request("m", Api.OPENAI_CHAT, (TEXT[:100], TEXT[100:]), len(TEXT), output_tokens=output)


def test_hits_count_in_tokens_of_the_model_each_is_asked_for() -> None:
    group, index = group_of("m", "n", "m"), PrefixIndex()
    group.traits["n"].bytes_per_token = 2.0
    index.insert(1, hash_prompt((TEXT,), chain_seed("n", "")).blocks[:5])
    index.insert(2, hash_prompt((TEXT,), chain_seed("m", "")).blocks)
    case = make_case(request(), group, look_up(request(), group, index), 0, 0.0)
    assert case.hits == [0, 5 * BLOCK_BYTES // 2, 10 * BLOCK_BYTES // 4]
    assert case.uncached == [len(TEXT) // 4, 5 * BLOCK_BYTES // 2, REQUEST_TOKENS]


def test_a_prompt_that_was_looked_up_for_more_destinations_weighs_those_that_are_left() -> None:
    group, index = group_of("m", "n"), PrefixIndex()
    index.insert(1, hash_prompt((TEXT,), chain_seed("n", "")).blocks)
    case = make_case(request(), group.only([1]), look_up(request(), group, index), 0, 0.0)
    assert case.hits == [10 * BLOCK_BYTES // 4]


def test_hits_are_believed_as_far_as_the_engine_confirms_them() -> None:
    group, index = group_of("m"), PrefixIndex()
    group.destinations[0].hit_trust = 0.5
    index.insert(0, hash_prompt((TEXT,), chain_seed("m", "")).blocks)
    case = make_case(request(), group, look_up(request(), group, index), 0, 0.0)
    assert case.hits == [5 * BLOCK_BYTES // 4]


def test_what_stands_at_each_is_collected_again_when_something_has_changed_or_time_has_passed() -> None:
    group = group_of("m", "m")
    one, again = (make_case(request(), group, Prompt(), 1, 0.0) for _ in range(2))
    assert again.ahead is one.ahead
    group.loads[0].prefill_tokens, group.loads[1].foreign_requests = 100, 2.0
    told = make_case(request(), group, Prompt(), 2, 0.0)
    assert (told.ahead, told.beside) == ([100, 0], [0, 2.0])
    assert make_case(request(), group, Prompt(), 2, SCRAPE_FADES_S).beside == [0, 1.0]


def test_only_those_with_room_in_the_kv_cache_fit() -> None:
    group = group_of("m", "m", "m")
    need = len(TEXT) // 4 + 100
    group.loads[0].room, group.loads[2].room, group.loads[2].resident = need, need, 1
    assert list(make_case(request(100), group, Prompt(), 0, 0.0).fitting) == [0, 1]
    group.loads[2].resident = 0
    assert list(make_case(request(100), group, Prompt(), 1, 0.0).fitting) == [0, 1, 2]


def test_the_answer_is_expected_to_be_usual_within_the_clients_limit() -> None:
    group = group_of("m")
    usual = int(group.traits["m"].output_tokens)
    assert [expected_output(request(limit), group) for limit in (None, 10, 10**9, 0)] == [usual, 10, usual, 1]


def test_a_prompt_has_at_least_one_token() -> None:
    assert prompt_tokens(Request("m", Api.OPENAI_CHAT, (), 0), group_of("m"), "m") == 1


def test_each_case_takes_a_turn() -> None:
    group = group_of("m")
    assert [make_case(request(), group, Prompt(), 0, 0.0).turn for _ in range(3)] == [0, 1, 2]


def test_a_price_counts_as_the_time_that_is_worth_as_much() -> None:
    group = group_of("m", "m")
    endpoint = group.destinations[1].endpoint
    assert endpoint is not None
    endpoint.spec = replace(endpoint.spec, prices=(PricedModel("m", Price(1_000.0, 2_000.0)),))
    case = make_case(request(output=100), group, Prompt(), 0, 0.0)
    free, priced = price_column(group, case, usd_per_hour=10.0)
    assert free == 0.0
    assert priced == pytest.approx((case.uncached[1] * 0.001 + 100 * 0.002) / 10.0 * HOUR_MS)


def test_an_adapter_costs_its_loading_where_it_is_not_loaded() -> None:
    group, typical = Group(), Typical(adapter_ms=70.0)
    for slot in range(2):
        endpoint = Endpoint(EndpointSpec(REF, Address(f"h{slot}:1")), slot, 1, adapters=frozenset({"ada"}))
        group.add(Destination(TargetKind.POOL, REF, "", endpoint), "ada", cold_rates(typical), ModelTraits())
    group.destinations[1].use_adapter("ada")
    assert group.has_adapters
    assert adapter_column(group) == [70.0, 0.0]


def test_a_full_cache_that_was_seen_long_ago_keeps_nobody_away() -> None:
    group = group_of("m", "m")
    group.loads[0].room = 0.0
    group.loads[0].seen_at = 100.0
    fitting = [make_case(request(), group, Prompt(), 0, now).fitting for now in (100.0, 100.0 + ROOM_KNOWN_S + 0.1)]
    assert list(map(list, fitting)) == [[1], [0, 1]]


def test_a_prompt_that_is_looked_up_again_is_found_as_one_that_was_never_seen() -> None:
    group, index = group_of("m", "m", "m"), PrefixIndex()
    blocks = hash_prompt((TEXT,), chain_seed("m", "")).blocks
    first = index.insert(0, blocks[:3])
    index.insert(1, blocks)
    known = look_up(request(), group, index)
    assert look_up(request(), group, index, known) is known
    index.rollback(first)
    index.insert(2, blocks[:7])
    again = look_up(request(), group, index, known)
    assert again.depths == {"m": {1: 10, 2: 7}} == look_up(request(), group, index).depths
    assert (again.blocks, again.key, known.depths) == (known.blocks, known.key, {"m": {0: 3, 1: 10}})
    assert look_up(request(), group.only([0, 2]), index, again).depths == {"m": {2: 7}}

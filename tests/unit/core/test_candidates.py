"""Groups and tiers of candidates."""

from collections import Counter
from dataclasses import replace

import pytest
from msgspec.structs import replace as replace_request

from kinference.core.candidates import CACHED_MAX, Candidates, Group, Shortlist, claim_of, expected_usd
from kinference.core.filters import Verdict
from kinference.core.fleet import BackendSpec, EndpointSpec, Fleet, Lacking
from kinference.core.policy import ModelRule, RoutingRules, Target, TargetKind
from kinference.core.prefix.engine_blocks import EngineBlocks
from kinference.core.prefix.index import PrefixIndex
from kinference.core.prices import Price, PricedModel
from kinference.core.request import Request
from kinference.core.roster import Roster
from kinference.core.rulebook import Rulebook
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import Api, Need

A, B, CLOUD = (ObjectRef("default", name) for name in ("a", "b", "cloud"))


def candidates_of(*targets: Target) -> tuple[Roster, Candidates]:
    """Two pools of two endpoints each, and a backend; a rule for `m` where targets are given."""
    fleet = Fleet()
    for pool in (A, B):
        addresses = [Address(f"{pool.name}{number}:1") for number in range(2)]
        fleet.set_pool(pool, [EndpointSpec(pool, address, models=("m", "n")) for address in addresses])
        for address in addresses:
            fleet.set_ready(pool, address, ready=True)
    prices = (PricedModel("cloud-m", Price(1_000.0, 0.0)),)
    fleet.set_backends([BackendSpec(CLOUD, Api.OPENAI_CHAT, {"m": "cloud-m"}, prices=prices)])
    index = PrefixIndex()
    roster = Roster(fleet, index, EngineBlocks(index))
    roster.sync()
    rules = RoutingRules(models=(ModelRule("m", targets),) if targets else ())
    return roster, Candidates(roster, Rulebook(rules))


def shortlist(candidates: Candidates, model: str = "m", pool: ObjectRef | None = None, size: int = 0) -> Shortlist:
    return candidates.shortlist(Request(model, Api.OPENAI_CHAT, (), size, pool=pool), None, 0.0)


def named(group: Group) -> list[tuple[str, str]]:
    return list(zip(group.names, group.models, strict=True))


def test_without_a_rule_all_who_serve_the_name_compete() -> None:
    _, candidates = candidates_of()
    (group,) = shortlist(candidates).groups
    assert named(group) == [
        ("default/a/a0:1", "m"),
        ("default/a/a1:1", "m"),
        ("default/b/b0:1", "m"),
        ("default/b/b1:1", "m"),
        ("backend default/cloud", "cloud-m"),
    ]
    assert group.slots == [0, 1, 2, 3, -1]
    assert group.masks == {"m": 0b1111}
    assert group.places == {"m": {0: 0, 1: 1, 2: 2, 3: 3}}


def test_targets_of_one_priority_without_weights_form_one_group_in_the_order_of_the_fleet() -> None:
    _, candidates = candidates_of(Target(TargetKind.BACKEND, CLOUD, "x"), Target(TargetKind.POOL, A, "n"))
    (group,) = shortlist(candidates).groups
    assert named(group) == [("default/a/a0:1", "n"), ("default/a/a1:1", "n"), ("backend default/cloud", "x")]


def test_targets_with_weights_form_groups_of_their_own() -> None:
    _, candidates = candidates_of(
        Target(TargetKind.POOL, A, weight=3), Target(TargetKind.POOL, B), Target(TargetKind.BACKEND, CLOUD, weight=0)
    )
    assert [(group.weight, group.names[0]) for group in shortlist(candidates).groups] == [
        (3, "default/a/a0:1"),
        (1, "default/b/b0:1"),
    ]


def test_one_pool_under_two_models_competes_under_both() -> None:
    targets = [Target(TargetKind.POOL, A, model) for model in ("m", "n", "m")]
    _, candidates = candidates_of(*targets)
    (group,) = shortlist(candidates).groups
    assert [model for _, model in named(group)] == ["m", "n", "m", "n"]
    assert group.places == {"m": {0: 0, 1: 2}, "n": {0: 1, 1: 3}}


def test_a_named_pool_leaves_out_the_rest() -> None:
    _, candidates = candidates_of()
    (group,) = shortlist(candidates, pool=B).groups
    assert group.names == ["default/b/b0:1", "default/b/b1:1"]


def test_a_tripped_one_is_left_out_and_a_tripped_tier_skipped() -> None:
    roster, candidates = candidates_of(Target(TargetKind.POOL, A), Target(TargetKind.POOL, B, priority=1))
    roster.endpoints[0].circuit.reject("why", 0.0)
    (group,) = shortlist(candidates).groups
    assert group.names == ["default/a/a1:1"]
    roster.endpoints[1].circuit.reject("why", 0.0)
    (group,) = shortlist(candidates).groups
    assert group.names[0] == "default/b/b0:1"


def test_where_the_request_has_failed_it_does_not_go_again_and_the_next_tier_gets_its_turn() -> None:
    _, candidates = candidates_of(Target(TargetKind.POOL, A), Target(TargetKind.BACKEND, CLOUD, "x", priority=1))

    def left(*failed: Address | ObjectRef) -> list[str]:
        request = Request("m", Api.OPENAI_CHAT, (), 0, failed=frozenset(failed), attempts_left=9)
        found = candidates.shortlist(request, None, 0.0)
        assert found.groups or found.options.verdicts[Verdict.FAILED] == len(failed)
        return [name for group in found.groups for name in group.names]

    assert left(Address("a0:1")) == ["default/a/a1:1"]
    assert left(Address("a0:1"), Address("a1:1")) == ["backend default/cloud"]
    assert left(Address("a0:1"), Address("a1:1"), CLOUD) == []


def test_when_none_is_left_everyone_has_a_verdict() -> None:
    roster, candidates = candidates_of(Target(TargetKind.POOL, A))
    for one in roster.endpoints:
        one.circuit.reject("no route", 0.0)
    found = shortlist(candidates)
    assert not found.groups
    assert found.options.verdicts == {Verdict.TRIPPED: 2}
    assert found.options.rejected[0].verdict == "with an open circuit: no route"
    assert shortlist(candidates).options.verdicts == {Verdict.TRIPPED: 2}


def test_too_short_a_context_removes_only_those_that_have_it() -> None:
    roster, candidates = candidates_of(Target(TargetKind.POOL, A))
    for one, context in zip(roster.endpoints, (100, 1_000), strict=False):
        assert one.endpoint is not None
        one.endpoint.max_model_tokens = context
    (group,) = shortlist(candidates, size=3_000).groups
    assert group.names == ["default/a/a1:1"]
    assert shortlist(candidates, size=30_000).options.verdicts == {Verdict.TOO_LONG: 2}


def test_turns_are_counted_across_the_smaller_groups_made_of_one() -> None:
    _, candidates = candidates_of()
    (group,) = shortlist(candidates).groups
    assert [next(group.turns), next(group.only([0]).turns), next(group.turns)] == [0, 1, 2]


def test_what_depends_on_the_fleet_alone_is_found_once_until_it_changes() -> None:
    _, candidates = candidates_of()
    (first,) = shortlist(candidates).groups
    assert shortlist(candidates).groups[0] is first
    candidates.refresh(Rulebook(RoutingRules()))
    assert shortlist(candidates).groups[0] is not first


def test_names_without_end_do_not_fill_the_memory() -> None:
    _, candidates = candidates_of()
    candidates.refresh(Rulebook(RoutingRules(models=(ModelRule("*", (Target(TargetKind.POOL, A, "m"),)),))))
    for number in range(CACHED_MAX + 10):
        assert shortlist(candidates, f"name-{number}").groups
    assert len(candidates._cache) <= CACHED_MAX


def test_what_costs_more_than_there_is_left_is_left_out_and_what_is_free_never_is() -> None:
    _, candidates = candidates_of()
    request = Request("m", Api.OPENAI_CHAT, (), 4_000)  # about 1,000 tokens, 1 dollar
    for purse_usd, places in ((None, 5), (1.0, 5), (0.99, 4), (0.0, 4), (-3.0, 4)):
        (group,) = candidates.shortlist(request, None, 0.0, purse_usd).groups
        assert len(group.names) == places
    _, candidates = candidates_of(Target(TargetKind.BACKEND, CLOUD))
    options = candidates.shortlist(request, None, 0.0, 0.0).options
    assert options.verdicts[Verdict.OVER_BUDGET] == 1


def test_a_dear_tier_makes_room_for_the_next() -> None:
    _, candidates = candidates_of(Target(TargetKind.BACKEND, CLOUD), Target(TargetKind.POOL, A, priority=1))
    request = Request("m", Api.OPENAI_CHAT, (), 4_000)
    (group,) = candidates.shortlist(request, None, 0.0, 0.5).groups
    assert group.names == ["default/a/a0:1", "default/a/a1:1"]
    (group,) = candidates.shortlist(request, None, 0.0, 5.0).groups
    assert expected_usd(request, group) == [1.0]


def test_requests_with_other_needs_have_other_candidates() -> None:
    roster, candidates = candidates_of()
    backend = roster.backends[0].backend
    assert backend is not None
    roster.backends[0].backend = replace(backend, lacks=(Lacking("*", frozenset({Need.VISION, Need.TOOLS})),))
    seeing = Request("m", Api.OPENAI_CHAT, (), 0, needs=frozenset({Need.VISION, Need.TOOLS}))
    assert len(shortlist(candidates).groups[0].names) == 5
    found = candidates.shortlist(seeing, None, 0.0)
    assert len(found.groups[0].names) == 4
    assert found.options.lacking == {Need.VISION, Need.TOOLS}
    assert [one.verdict for one in found.options.rejected] == ["lacking tools, vision"]


def test_room_for_the_longest_answer_is_preferred_and_not_required() -> None:
    roster, candidates = candidates_of(Target(TargetKind.POOL, A), Target(TargetKind.BACKEND, CLOUD))
    for destination, context in zip(roster.endpoints, (1_200, 3_000, 0, 0), strict=True):
        assert destination.endpoint is not None
        destination.endpoint.max_model_tokens = context or None
    backend = roster.backends[0].backend
    assert backend is not None
    roster.backends[0].backend = replace(backend, context_tokens=1_500)

    def who(output_tokens: int | None) -> list[str]:
        request = Request("m", Api.OPENAI_CHAT, (), 4_000, output_tokens=output_tokens)  # about 1,000 tokens
        return candidates.shortlist(request, None, 0.0).groups[0].names

    assert len(who(None)) == 3
    assert len(who(500)) == 2
    assert who(2_000) == ["default/a/a1:1"]
    assert len(who(1_000_000)) == 3


def failing(candidates: Candidates, attempts_left: int, *failed: Address | ObjectRef) -> list[str]:
    request = Request("m", Api.OPENAI_CHAT, (), 0, failed=frozenset(failed), attempts_left=attempts_left)
    return [name for group in candidates.shortlist(request, None, 0.0).groups for name in group.names]


def test_the_attempts_that_are_left_are_kept_for_who_has_not_been_tried_at_all() -> None:
    a0, cloud = Address("a0:1"), ["backend default/cloud"]
    _, candidates = candidates_of(
        Target(TargetKind.POOL, A),
        Target(TargetKind.POOL, B, priority=1),
        Target(TargetKind.BACKEND, CLOUD, priority=2),
    )
    assert failing(candidates, 3) == ["default/a/a0:1", "default/a/a1:1"]
    assert failing(candidates, 3, a0) == ["default/a/a1:1"]
    assert failing(candidates, 2, a0) == ["default/b/b0:1", "default/b/b1:1"]
    assert failing(candidates, 1, a0, Address("b0:1")) == cloud
    assert failing(candidates, 1, a0, Address("b0:1"), CLOUD) == ["default/a/a1:1"]


def test_a_broken_side_of_a_split_leaves_its_last_attempt_to_the_other() -> None:
    _, candidates = candidates_of(Target(TargetKind.POOL, A, weight=1), Target(TargetKind.POOL, B, weight=9))
    assert failing(candidates, 2, Address("a0:1")) == ["default/a/a1:1", "default/b/b0:1", "default/b/b1:1"]
    assert failing(candidates, 1, Address("a0:1")) == ["default/b/b0:1", "default/b/b1:1"]


def test_no_attempt_is_kept_for_who_is_ejected() -> None:
    roster, candidates = candidates_of(Target(TargetKind.POOL, A), Target(TargetKind.BACKEND, CLOUD, priority=1))
    roster.backends[0].circuit.reject("no key", 0.0)
    assert failing(candidates, 1, Address("a0:1")) == ["default/a/a1:1"]


def test_claims_are_as_strong_as_weights_say() -> None:
    _, candidates = candidates_of(
        Target(TargetKind.POOL, A, weight=1),
        Target(TargetKind.POOL, B, weight=2),
        Target(TargetKind.BACKEND, CLOUD, weight=5),
    )
    groups = shortlist(candidates).groups
    won = Counter(max(groups, key=lambda group: claim_of(f"s{number}", group)).weight for number in range(4_000))
    assert [won[weight] for weight in (1, 2, 5)] == pytest.approx([500, 1_000, 2_500], abs=120)


def test_whoever_can_wait_is_not_sent_where_everybody_has_failed() -> None:
    roster, candidates = candidates_of(Target(TargetKind.POOL, A))
    for destination in roster.endpoints:
        for _ in range(3):
            destination.circuit.failed("status 503", 0.0)
    hasty = Request("m", Api.OPENAI_CHAT, (), 0)
    assert candidates.shortlist(hasty, None, 0.0).groups
    found = candidates.shortlist(replace_request(hasty, is_patient=True), None, 0.0)
    assert not found.groups
    assert found.options.verdicts[Verdict.TRIPPED] == 2
    assert candidates.shortlist(replace_request(hasty, is_patient=True), None, 1e3).groups

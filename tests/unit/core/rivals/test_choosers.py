"""The rules of others that are no sum."""

from collections.abc import Callable, Sequence
from random import Random

from msgspec.structs import replace

from kinference.core.choose import Chooser
from kinference.core.cost import Case
from kinference.core.rivals.choosers import (
    BoundedRing,
    ExploitOrExplore,
    HotOrCold,
    MatchAmongUnloaded,
    MatchUnlessImbalanced,
    MatchUnlessShort,
    MostFree,
    SameForSession,
    StickyUntilSaturated,
)

MakeCase = Callable[..., Case]


def chosen(chooser: Chooser, case: Case, totals: Sequence[float] = ()) -> set[int]:
    rng = Random(1)
    return {chooser.choose(case, list(totals) or [0.0] * len(case.hits), rng) for _ in range(50)}


def test_equal_heads_share_an_endpoint_until_it_is_over_the_bound(make_case: MakeCase) -> None:
    ring = BoundedRing(1.25)
    (home,) = chosen(ring, make_case([0] * 4, key=9))
    beside = [1.0] * 4
    beside[home] = 20.0
    assert home not in chosen(ring, make_case([0] * 4, beside=beside, key=9))
    assert len({min(chosen(ring, make_case([0] * 4, key=key))) for key in range(1, 40)}) == 4


def test_a_prompt_without_a_head_falls_anywhere(make_case: MakeCase) -> None:
    assert len(chosen(BoundedRing(1.25), make_case([0] * 4, key=0))) == 4


def test_a_session_keeps_its_endpoint_whatever_its_load_and_moves_only_when_that_goes(make_case: MakeCase) -> None:
    rule = SameForSession()
    homes = [min(chosen(rule, replace(make_case([0] * 4), session=session))) for session in range(1, 40)]
    assert set(homes) == {0, 1, 2, 3}
    fewer = [min(chosen(rule, replace(make_case([0] * 3), session=session))) for session in range(1, 40)]
    assert all(now == before for now, before in zip(fewer, homes, strict=True) if before != 3)
    busy = replace(make_case([0] * 4, beside=[9.0] * 4), session=1)
    assert chosen(rule, busy) == {homes[0]}
    assert chosen(rule, make_case([0] * 3, beside=[2.0, 1.0, 2.0])) == {1}


def test_the_quickest_of_those_that_are_not_hot_wins(make_case: MakeCase) -> None:
    rule = HotOrCold(0.5)
    assert chosen(rule, make_case([0] * 4, beside=[9.0, 1.0, 2.0, 3.0]), [1.0, 30.0, 20.0, 10.0]) == {3}
    assert chosen(rule, make_case([0] * 4, beside=[1.0] * 4), [4.0, 3.0, 2.0, 2.0]) == {2, 3}


def test_a_match_counts_unless_too_much_is_missing(make_case: MakeCase) -> None:
    assert chosen(MatchUnlessShort(200), make_case([0, 900, 850], beside=[0.0, 9.0, 0.0])) == {1}
    assert chosen(MatchUnlessShort(50), make_case([0, 900, 850], beside=[0.0, 9.0, 1.0])) == {0}
    assert chosen(MatchUnlessShort(5_000), make_case([0, 0], beside=[1.0, 0.0])) == {1}


def test_the_most_room_for_each_request_wins_what_waits_taken_off(make_case: MakeCase) -> None:
    case = make_case([0] * 3, ahead=[0.0, 0.0, 900.0])
    for load, room in zip(case.loads, (1_000.0, 2_000.0, 2_500.0), strict=True):
        load.room = room
    assert chosen(MostFree(), case) == {1}
    assert chosen(MostFree(), make_case([0] * 3)) == {0, 1, 2}


def test_the_longest_match_wins_while_queues_are_even(make_case: MakeCase) -> None:
    rule = MatchUnlessImbalanced(0.5, 32, 1.5)
    assert chosen(rule, make_case([0, 900, 600], beside=[5.0, 30.0, 5.0])) == {1}
    assert chosen(rule, make_case([0, 900, 600], beside=[5.0, 40.0, 6.0])) == {0}


def test_without_a_long_match_the_emptiest_cache_wins(make_case: MakeCase) -> None:
    case = make_case([0, 400, 0])
    for load, resident in zip(case.loads, (500, 0, 100), strict=True):
        load.resident = resident
    assert chosen(MatchUnlessImbalanced(0.5, 32, 1.5), case) == {1}


def test_a_match_far_over_the_mean_is_passed_over(make_case: MakeCase) -> None:
    rule = MatchAmongUnloaded(8, 1.0)
    assert chosen(rule, make_case([0, 500, 900], beside=[1.0, 1.0, 1.0])) == {2}
    assert chosen(rule, make_case([0, 500, 900], beside=[1.0, 1.0, 7.0])) == {1}
    assert chosen(rule, make_case([0, 500, 900], beside=[0.0, 1.0, 9.0])) == {0}
    assert chosen(rule, make_case([0, 0, 0], beside=[2.0, 1.0, 2.0])) == {1}


def test_warm_endpoints_keep_a_prompt_until_their_queue_is_too_long(make_case: MakeCase) -> None:
    rule = StickyUntilSaturated(0.8, 2.0)
    assert chosen(rule, make_case([0, 900, 850], ahead=[0.0, 9_000.0, 9_500.0])) == {1}
    assert chosen(rule, make_case([0, 900, 850], ahead=[0.0, 21_000.0, 22_000.0])) == {0}
    assert chosen(rule, make_case([0, 500, 0], ahead=[0.0, 600.0, 0.0])) == {0, 2}


def test_a_long_match_is_exploited_until_its_holder_is_overloaded(make_case: MakeCase) -> None:
    rule = ExploitOrExplore(2.0)
    assert chosen(rule, make_case([0, 900]), [100.0, 15.0]) == {1}
    assert chosen(rule, make_case([0, 900]), [100.0, 510.0]) == {0}
    assert chosen(rule, make_case([0, 300]), [100.0, 300.0]) == {0}

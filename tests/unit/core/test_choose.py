"""The choosers."""

from random import Random

from msgspec.structs import replace

from kinference.core.choose import AnyOne, Cheapest, Chooser, InTurn, LesserOfTwo
from kinference.core.cost import Case
from kinference.core.fleet import Endpoint, EndpointSpec
from kinference.core.policy import TargetKind
from kinference.core.rates import Line, Rates, Typical
from kinference.core.roster import Destination
from kinference.ids import Address, ObjectRef

REF = ObjectRef("default", "pool")


def case(weights: tuple[int, ...], error_ms: float = 0.0) -> Case:
    endpoints = [Endpoint(EndpointSpec(REF, Address(f"h{n}:1"), weight=one), n, 1) for n, one in enumerate(weights)]
    destinations = [Destination(TargetKind.POOL, REF, "", endpoint) for endpoint in endpoints]
    rates = [Rates(Typical(Line()), samples=1, error_ms=error_ms) for _ in weights]
    zeros = [0.0] * len(weights)
    slopes, uncached = [0.1] * len(weights), [1_000] * len(weights)
    bases, work = [one.base_ms for one in rates], [100.0] * len(weights)
    standing = (bases, slopes, zeros, zeros, zeros, dict[int, float]())
    return Case(destinations, [], rates, [], [], *standing, [], uncached, work, 1, [], now=0.0, turn=0, key=0)


def shares(chooser: Chooser, asked: Case, totals: list[float]) -> list[float]:
    rng, picks = Random(1), [0] * len(totals)
    for _ in range(2_000):
        picks[chooser.choose(asked, totals, rng)] += 1
    return [round(count / 2_000, 1) for count in picks]


def test_the_cheapest_wins() -> None:
    assert shares(Cheapest(0.25), case((1, 1, 1)), [3.0, 1.0, 2.0]) == [0.0, 1.0, 0.0]


def test_ties_fall_by_weight() -> None:
    assert shares(Cheapest(), case((1, 3, 1)), [1.0, 1.0, 2.0]) == [0.2, 0.8, 0.0]


def test_within_the_learned_error_costs_are_equal() -> None:
    totals = [100.0, 110.0, 130.0]
    assert shares(Cheapest(0.25), case((1, 1, 1), error_ms=15.0), totals) == [0.5, 0.5, 0.0]
    assert shares(Cheapest(0.25), case((1, 1, 1), error_ms=5.0), totals) == [1.0, 0.0, 0.0]


def test_the_band_is_never_wider_than_its_share_of_the_requests_own_work() -> None:
    assert shares(Cheapest(0.25), case((1, 1), error_ms=1e9), [100.0, 126.0]) == [1.0, 0.0]


def test_any_one_falls_by_weight() -> None:
    assert shares(AnyOne(), case((1, 4)), [0.0, 0.0]) == [0.2, 0.8]


def test_weights_of_nothing_still_choose_someone() -> None:
    assert AnyOne().choose(case((0, 0)), [0.0, 0.0], Random(1)) == 1


def test_turns_go_round() -> None:
    asked = case((1, 1, 1))
    turns = [InTurn().choose(replace(asked, turn=turn), [0.0] * 3, Random(1)) for turn in range(5)]
    assert turns == [0, 1, 2, 0, 1]


def test_the_lesser_of_two_never_is_the_worst_of_all() -> None:
    low, middle, high = shares(LesserOfTwo(), case((1, 1, 1)), [1.0, 2.0, 3.0])
    assert high == 0.0
    assert low > middle > 0.0
    assert LesserOfTwo().choose(case((1,)), [1.0], Random(1)) == 0

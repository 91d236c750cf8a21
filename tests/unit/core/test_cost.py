"""The cost terms, one by one."""

import pytest
from msgspec.structs import replace

from kinference.core.cost import (
    CALM_MS,
    FIRST_TOKEN_MS,
    IN_A_ROW,
    STEP_MS_PER_REQUEST,
    TOKEN_MS,
    Base,
    Case,
    CostTerm,
    InFlight,
    Interference,
    Prefill,
    QueueWait,
    Risk,
    SlotWait,
    none_free,
    spread_share,
)
from kinference.core.health import Circuit
from kinference.core.ledger import Load
from kinference.core.policy import TargetKind
from kinference.core.rates import Line, Rates, Typical
from kinference.core.roster import Destination
from kinference.ids import ObjectRef

TERMS: tuple[CostTerm, ...] = (Base(), QueueWait(), SlotWait(), Prefill(), Interference(), Risk(), InFlight())


def case() -> Case:
    """Two equal endpoints, but the second is busy, colder, full and failing."""
    ref = ObjectRef("default", "pool")
    destinations = [Destination(TargetKind.POOL, ref, name) for name in ("idle", "busy")]
    destinations[1].circuit.failed("status 500", 0.0)
    rates = [Rates(Typical(Line(10.0, 0.5)), hold_ms=1_000.0) for _ in destinations]
    return Case(
        destinations,
        ["idle", "busy"],
        rates,
        [Load(), Load(waiting=1, prefilling=3)],
        circuits=[destination.circuit for destination in destinations],
        bases=[one.base_ms for one in rates],
        slopes=[0.5, 0.5],
        ahead=[0.0, 100.0],
        beside=[0.0, 4.0],
        left=[0.0, 50.0],
        hung={},
        hits=[900, 0],
        uncached=[100, 1_000],
        work=[50.0, 500.0],
        output_tokens=200,
        fitting=[0],
        now=0.0,
        turn=0,
        key=0,
    )


def behind(case: Case, *ahead: float) -> Case:
    """The same with so many tokens to be computed before ours, none of them by now."""
    return replace(
        case, ahead=list(ahead), left=[slope * tokens for slope, tokens in zip(case.slopes, ahead, strict=True)]
    )


def test_base_is_the_learned_base() -> None:
    assert Base().column(case()) == [10.0, 10.0]


def test_queue_wait_is_the_time_to_compute_what_is_ahead() -> None:
    assert QueueWait().column(case()) == [0.0, 50.0]
    assert QueueWait(share=0.1).column(case()) == [0.0, 5.0]


def test_an_engine_that_seems_to_hang_is_waited_for_as_long_as_it_is_overdue() -> None:
    hanging = replace(case(), hung={0: 2_000.0})
    assert QueueWait(begun=True).column(hanging) == [2_000.0, 50.0]
    assert QueueWait().column(hanging) == [0.0, 50.0]


def test_of_what_is_ahead_only_what_is_left_by_now_makes_wait_where_that_counts() -> None:
    begun = replace(case(), left=[0.0, 20.0])
    assert QueueWait(begun=True).column(begun) == [0.0, 20.0]
    assert QueueWait().column(begun) == [0.0, 50.0]


def test_prefill_is_the_time_to_compute_what_is_not_cached() -> None:
    assert Prefill().column(case()) == [50.0, 500.0]


def test_slot_wait_is_the_time_until_somebody_ends_where_the_cache_is_full() -> None:
    assert SlotWait().column(case()) == [0.0, 500.0]
    assert list(SlotWait().column(replace(case(), fitting=[0, 1]))) == [], "nobody has to wait"


def test_interference_is_the_delay_of_each_request_beside() -> None:
    decode = spread_share(200) * 2 * STEP_MS_PER_REQUEST * 200 * 4
    calm = behind(case(), 0.0, 0.0)
    assert Interference(0.5, crowd=0.0).column(calm) == pytest.approx([0.0, 0.5 * 500.0 * 4 + decode])


@pytest.mark.parametrize("output_tokens", [34, 200, 5_000])
def test_a_time_that_is_spread_over_an_answer_counts_by_how_much_of_its_objective_it_takes(output_tokens: int) -> None:
    assert spread_share(output_tokens) * TOKEN_MS * output_tokens == pytest.approx(FIRST_TOKEN_MS)


@pytest.mark.parametrize("output_tokens", [0, 1, 33])
def test_a_time_that_is_spread_over_an_answer_never_counts_more_than_one_before_it(output_tokens: int) -> None:
    assert spread_share(output_tokens) == 1.0


@pytest.mark.parametrize("busy", [0, 1, 2])
def test_stalling_an_answer_counts_as_much_as_it_takes_of_its_objective_by_the_chance_of_no_pause(busy: int) -> None:
    there = replace(behind(case(), *[1.0] * busy, *[0.0] * (2 - busy)), beside=[4.0, 4.0])
    (_, cold), (_, warm) = (Interference(0.02, 0.0).column(one) for one in (there, replace(there, work=[0.0, 0.0])))
    counts = 0.02 + (spread_share(200) - 0.02) * none_free(busy, 2) ** IN_A_ROW
    assert cold - warm == pytest.approx(counts * 4 * 500.0)


def test_to_go_where_fewer_decode_is_worth_a_longer_wait_when_no_engine_has_a_pause() -> None:
    there = replace(case(), work=[500.0, 500.0], beside=[20.0, 2.0])
    pauses, none = (Interference(crowd=0.0).column(behind(there, *ahead)) for ahead in ([0.0, 1.0], [1.0, 1.0]))
    assert none[0] - none[1] > 3.0 * (pauses[0] - pauses[1]) > 0.0


def test_that_few_decode_there_makes_no_prompt_cheap_that_has_to_wait_long() -> None:
    there = behind(replace(case(), work=[500.0, 500.0], beside=[20.0, 2.0]), 1.0, 2 * CALM_MS)
    crowded, calm = Interference(crowd=0.0).column(there)
    usual, _ = Interference(crowd=0.0).column(replace(there, beside=[11.0, 11.0]))
    assert calm == pytest.approx(usual)
    assert calm < crowded


def test_work_costs_more_everywhere_the_fewer_engines_are_free() -> None:
    quiet, crowded = (Interference(0.0, crowd).column(case()) for crowd in (0.0, 0.5))
    price = 0.5 * none_free(1, 2)
    assert [more - less for less, more in zip(quiet, crowded, strict=True)] == pytest.approx([price * 50, price * 500])


def erlang(busy: int, engines: int) -> float:
    """The chance of waiting, as Erlang has it."""
    blocked = 1.0
    for number in range(1, engines + 1):
        blocked = busy * blocked / (number + busy * blocked)
    return blocked / (1.0 - busy / engines * (1.0 - blocked))


@pytest.mark.parametrize("engines", [1, 2, 4, 16, 64, 512])
def test_the_chance_that_no_engine_is_free_is_erlangs(engines: int) -> None:
    chances = [none_free(busy, engines) for busy in range(engines + 1)]
    assert (chances[0], chances[-1]) == (0.0, 1.0)
    assert chances == sorted(chances)
    for busy in range(engines):
        assert chances[busy] == pytest.approx(erlang(busy, engines), abs=0.1)


def test_who_only_decodes_makes_work_no_dearer_anywhere_else() -> None:
    busy = replace(case(), beside=[0.0, 400.0])
    assert Interference().column(busy)[0] == Interference().column(case())[0]


@pytest.mark.parametrize(("waits_ms", "kept"), [(0.0, 1.0), (CALM_MS / 2, 0.5), (CALM_MS, 0.0), (10 * CALM_MS, 0.0)])
def test_that_few_decode_there_speaks_the_less_for_an_engine_the_longer_prompts_wait_for_it(
    waits_ms: float, kept: float
) -> None:
    cached = behind(replace(case(), beside=[10.0, 90.0], work=[0.0, 0.0]), waits_ms / 0.5, 0.0)
    calm, busy = Interference().column(cached)
    each = spread_share(200) * 2 * STEP_MS_PER_REQUEST * 200
    assert busy == pytest.approx(90 * each)
    assert calm == pytest.approx((50 - 40 * kept) * each)


def test_what_must_be_computed_by_now_of_the_prompts_there_makes_nobody_wait() -> None:
    late = replace(case(), ahead=[200.0, 0.0], left=[0.0, 0.0], beside=[10.0, 90.0], work=[0.0, 0.0])
    idle = behind(late, 0.0, 0.0)
    assert Interference().column(late) == Interference().column(idle)


def test_risk_makes_failing_fast_slow() -> None:
    idle, busy = Risk().column(case())
    assert idle == 0.0
    assert busy > 0.0
    assert list(Risk().column(replace(case(), circuits=[Circuit(), Circuit()]))) == [], "nobody fails"


def test_in_flight_counts_requests() -> None:
    assert InFlight().column(case()) == [0.0, 4.0]


def test_no_term_is_ever_cheaper_for_the_busier_and_colder() -> None:
    for term in TERMS:
        idle, busy = term.column(case())
        assert 0.0 <= idle <= busy

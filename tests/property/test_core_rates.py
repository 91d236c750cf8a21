"""What is learned and what is summed up: finite, never negative, never cheaper for more, whatever is reported."""

from operator import mul
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kinference.core.cost import REQUEST_TOKENS, Base, Case, Interference, Prefill, QueueWait, Risk, SlotWait
from kinference.core.health import Circuit
from kinference.core.ledger import Load
from kinference.core.policies import ExpectedLatency
from kinference.core.policy import TargetKind
from kinference.core.rates import Line, Rates, Typical, cold_rates
from kinference.core.roster import Destination
from kinference.core.scoring import Draw, weigh
from kinference.ids import ObjectRef
from kinference.vocabulary import QosClass

HUGE = 2.0**53
SAMPLES = st.lists(st.tuples(st.floats(0.0, 1e9), st.floats(-HUGE, HUGE)), max_size=60)
KEPT = st.floats(0.0, 1.0)


@given(SAMPLES, KEPT)
def test_whatever_is_reported_the_line_is_finite_and_time_runs_forward(
    samples: list[tuple[float, float]], kept: float
) -> None:
    rates = cold_rates(Typical())
    for tokens, ttft_ms in samples:
        rates.typical.bound_base(ttft_ms, is_lone=tokens < 1_000)
        rates.learn(tokens, ttft_ms)
        rates.learn_hold(ttft_ms)
        rates.relax(kept)
        rates.typical.learn_adapter(ttft_ms)
        for line in (rates, rates.typical.line):
            assert 0.0 <= line.base_ms <= rates.typical.base_ms_max
            assert 0.0 < line.ms_per_token < HUGE
        assert 0.0 <= rates.error_ms < HUGE
        assert 0.0 <= rates.hold_ms <= HUGE
        assert 0.0 <= rates.typical.adapter_ms <= HUGE


@settings(max_examples=40, deadline=None)
@given(
    base=st.floats(5.0, 300.0),
    slope=st.floats(0.02, 2.0),
    noise=st.floats(0.0, 0.1),
    outliers=st.floats(0.0, 0.05),
    seed=st.integers(0, 1_000),
)
@example(base=5.0, slope=0.0625, noise=0.0, outliers=0.03125, seed=145)
@example(base=5.0, slope=0.5, noise=0.0, outliers=0.03125, seed=95)
def test_rates_converge_on_any_engine_with_noise_and_outliers(
    base: float, slope: float, noise: float, outliers: float, seed: int
) -> None:
    rng, rates = Random(seed), cold_rates(Typical())
    for _ in range(600):
        tokens = rng.choice([200, 1_000, 4_000, 16_000])
        ttft_ms = (base + slope * tokens) * (1.0 + rng.uniform(-noise, noise))
        rates.learn(tokens, 60_000.0 + ttft_ms if rng.random() < outliers else ttft_ms)
    for tokens in (1_000, 4_000, 16_000):
        assert rates.at(tokens) == pytest.approx(base + slope * tokens, rel=0.2)


@settings(max_examples=40, deadline=None)
@given(slope=st.floats(0.02, 2.0), ttft_ms=st.floats(0.0, HUGE), tokens=st.floats(0.0, 100_000.0))
def test_a_single_report_whatever_it_says_moves_what_is_expected_but_little(
    slope: float, ttft_ms: float, tokens: float
) -> None:
    rng, rates = Random(1), cold_rates(Typical())
    for _ in range(200):
        sample = rng.choice([200, 1_000, 4_000, 16_000])
        rates.learn(sample, 20.0 + slope * sample)
    before = rates.at(4_000)
    rates.learn(tokens, ttft_ms)
    assert rates.at(4_000) == pytest.approx(before, rel=0.15, abs=2.0)


def test_engines_of_different_speed_in_one_pool_are_told_apart_and_a_new_one_begins_between_them() -> None:
    typical, rng = Typical(), Random(1)
    fast, slow = cold_rates(typical), cold_rates(typical)
    for _ in range(300):
        tokens = rng.choice([500, 2_000, 8_000])
        fast.learn(tokens, 20.0 + 0.05 * tokens)
        slow.learn(tokens, 20.0 + 0.4 * tokens)
    assert fast.at(8_000) * 4 < slow.at(8_000)
    assert fast.at(8_000) < cold_rates(typical).at(8_000) < slow.at(8_000)


@settings(max_examples=30, deadline=None)
@given(noise=st.floats(1.0, 200.0), seed=st.integers(0, 1_000))
def test_the_error_band_is_as_wide_as_the_noise(noise: float, seed: int) -> None:
    rng, rates = Random(seed), cold_rates(Typical())
    for _ in range(500):
        tokens = rng.choice([1_000, 4_000])
        rates.learn(tokens, 500.0 + 0.5 * tokens + rng.uniform(-noise, noise))
    assert 0.2 * noise < rates.error_ms < noise + 25.0


COLUMNS = st.integers(1, 5).flatmap(
    lambda size: st.tuples(
        *(
            st.lists(values, min_size=size, max_size=size)
            for values in (
                st.floats(0.0, 500.0),
                st.floats(1e-4, 10.0),
                st.floats(0.0, 1e6),
                st.floats(0.0, 1e4),
                st.integers(REQUEST_TOKENS, 10**6),
                st.floats(0.0, 1.0),
                st.integers(0, 1_000),
                st.booleans(),
            )
        )
    )
)
TERMS = (Base(), QueueWait(), SlotWait(), Prefill(), Interference(), Risk())


def case_of(columns: tuple[list[float], ...], output_tokens: int = 200) -> Case:
    bases, slopes, ahead, beside, uncached, ratios, waiting, fits = columns
    size = len(bases)
    lines = [Line(base, slope) for base, slope in zip(bases, slopes, strict=True)]
    ref = ObjectRef("default", "pool")
    return Case(
        destinations=[Destination(TargetKind.POOL, ref, str(place)) for place in range(size)],
        names=[str(place) for place in range(size)],
        rates=[Rates(Typical(line)) for line in lines],
        loads=[Load(waiting=int(one), prefilling=int(one)) for one in waiting],
        circuits=[Circuit(failure_ratio=ratio) for ratio in ratios],
        bases=bases,
        slopes=slopes,
        ahead=ahead,
        beside=beside,
        left=[slope * tokens for slope, tokens in zip(slopes, ahead, strict=True)],
        hung={},
        hits=[0] * size,
        uncached=[int(one) for one in uncached],
        work=[slope * one for slope, one in zip(slopes, uncached, strict=True)],
        output_tokens=output_tokens,
        fitting=[place for place in range(size) if fits[place]],
        now=0.0,
        turn=0,
        key=1,
    )


@given(COLUMNS)
def test_every_term_is_finite_and_never_negative(columns: tuple[list[float], ...]) -> None:
    case = case_of(columns)
    for term in TERMS:
        for value in term.column(case):
            assert 0.0 <= value < float("inf"), term.name


@pytest.mark.parametrize("qos", [QosClass.INTERACTIVE, QosClass.BATCH])
@given(columns=COLUMNS, more=st.floats(0.0, 1e5), place=st.integers(0, 4))
def test_more_load_or_less_cached_never_makes_a_place_cheaper_nor_better_than_others(
    qos: QosClass, columns: tuple[list[float], ...], more: float, place: int
) -> None:
    """Nor better, while what is true of the fleet stays: how many engines are free, and how many usually decode at
    one, set what work counts everywhere, at others that have more of it, too.
    """
    scoring, place = ExpectedLatency().scoring(), place % len(columns[0])

    def totals(case: Case) -> list[float]:
        return list(weigh(case, Draw("p", scoring, qos, (), Random(1))).totals)

    case = case_of(columns)
    before = totals(case)
    slope = case.slopes[place]
    longer = [one + more * (at == place) for at, one in enumerate(case.ahead)]
    busier = [one + more * (at == place) for at, one in enumerate(case.beside)]
    colder = [one + int(more) * (at == place) for at, one in enumerate(case.uncached)]
    work = [one + slope * int(more) * (at == place) for at, one in enumerate(case.work)]
    is_room = bool(case.fitting) and len(case.fitting) == len(before)
    for worse, is_fleet_same in (
        (replace(case, ahead=longer, left=list(map(mul, case.slopes, longer))), case.ahead[place] > 0.0),
        (replace(case, uncached=colder, work=work), True),
        (replace(case, beside=busier) if is_room else case, not any(case.ahead)),
    ):
        after = totals(worse)
        assert after[place] >= before[place] * (1.0 - 1e-9)
        for other, total in enumerate(before):
            if total < before[place] * (1.0 - 1e-9) and worse is not case and is_fleet_same:
                assert after[other] <= after[place] * (1.0 + 1e-9)


@given(columns=COLUMNS, more=st.floats(0.0, 1e5), place=st.integers(0, 4))
def test_more_that_decode_at_a_place_never_make_it_better_than_others_that_can_begin_as_soon(
    columns: tuple[list[float], ...], more: float, place: int
) -> None:
    place %= len(columns[0])
    nothing = [0.0] * len(columns[0])
    case = replace(case_of(columns), ahead=nothing, left=nothing)
    busier = replace(case, beside=[one + more * (at == place) for at, one in enumerate(case.beside)])
    before, after = (Interference().column(one) for one in (case, busier))
    for other, total in enumerate(before):
        if total < before[place] * (1.0 - 1e-9):
            assert after[other] <= after[place] * (1.0 + 1e-9)

"""Bug reports of other routers as cases for our decision core, with their numbers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from msgspec import structs

from kinference.core.decision import BackendChoice, Decision, EndpointChoice
from kinference.core.fleet import BackendSpec, EndpointSpec, Fleet, Observation
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules
from kinference.core.request import Request
from kinference.core.waiting import AdmissionRules
from kinference.ids import Address, ObjectRef
from kinference.sim.cluster.demand import at_load
from kinference.sim.cluster.run import ClusterRun, FleetOptions
from kinference.sim.cluster.scenarios import ENGINE
from kinference.sim.workloads.catalogue import WORKLOADS
from kinference.vocabulary import AbortReason, Api, Outcome, QosClass

POOL = ObjectRef("default", "pool")
MODEL = "m"


def address(number: int) -> Address:
    return Address(f"10.0.0.{number}:8000")


def pool_of(size: int) -> Fleet:
    fleet = Fleet()
    fleet.set_pool(POOL, [EndpointSpec(POOL, address(number), models=(MODEL,)) for number in range(size)])
    for number in range(size):
        fleet.set_ready(POOL, address(number), ready=True)
    return fleet


def router_of(fleet: Fleet, seed: int = 1) -> Router:
    return Router(fleet, RoutingRules(), Random(seed))


def prompt_of(text: bytes, model: str = MODEL) -> Request:
    return Request(model, Api.OPENAI_CHAT, (text,), len(text))


def distinct(number: int, size: int = 4_096) -> Request:
    return prompt_of(Random(number).randbytes(size))


def where(decision: Decision) -> Address:
    assert isinstance(decision.choice, EndpointChoice), decision.reason
    return decision.choice.address


def tally(picks: list[Address], size: int) -> list[int]:
    return [picks.count(address(number)) for number in range(size)]


def in_flight(router: Router) -> dict[str, int]:
    return {one.address: one.requests for one in router.snapshot(0.0)}


def test_case_1_a_burst_between_scrapes_spreads_evenly() -> None:
    router = router_of(pool_of(4))
    counts = tally([where(router.decide(distinct(number), 0.0)) for number in range(64)], 4)
    assert max(counts) - min(counts) <= 1


def test_case_3_equal_workers_get_equal_shares() -> None:
    router, picks = router_of(pool_of(3)), []
    for number in range(1_000):
        decision = router.decide(distinct(number, 512), float(number))
        router.final_token(decision.reservation, 128, 10, None, float(number))
        picks.append(where(decision))
    chi_square = sum((count - 1_000 / 3) ** 2 / (1_000 / 3) for count in tally(picks, 3))
    assert chi_square < 13.8  # p = 0.001 with 2 degrees of freedom


@pytest.mark.parametrize("size", [4, 8])
def test_case_4_a_system_prompt_that_all_share_does_not_pull_all_to_one(size: int) -> None:
    router, shared = router_of(pool_of(size)), Random(0).randbytes(8_192)
    picks = [where(router.decide(prompt_of(shared + b"%150d" % number), 0.0)) for number in range(200)]
    assert max(tally(picks, size)) < 2 * 200 / size


def test_case_6_picks_that_are_abandoned_in_silence_leave_no_load_behind() -> None:
    router = router_of(pool_of(4))
    picked = [router.decide(distinct(number), 0.0) for number in range(1_000)]
    assert sum(in_flight(router).values()) == 1_000
    for number, decision in enumerate(picked):
        if number % 3 == 0:  # some callers vanish only after the first byte
            router.first_token(decision.reservation, 5, 200, 1.0)
        router.expire(decision.reservation, dispatched=number % 2 == 0, now=3_600.0)
    assert set(in_flight(router).values()) == {0}
    assert all((one.prefill_tokens, one.decode_tokens) == (0, 0) for one in router.snapshot(3_600.0))


def test_case_6_lost_reports_do_not_keep_traffic_away_until_their_time_is_over() -> None:
    fleet = pool_of(2)
    router = router_of(fleet)
    lost = [router.decide(distinct(number), 0.0) for number in range(40)]
    for decision in lost:
        router.first_token(decision.reservation, 5, 200, 0.1)
        if where(decision) == address(1):
            router.final_token(decision.reservation, 1_000, 10, None, 0.2)
    for second in range(1, 40):
        for number in range(2):
            fleet.observe(POOL, address(number), Observation(float(second), 0, 0, 0.0, 1_000, 16))
        router.snapshot(float(second))
    assert in_flight(router) == {address(0): 0, address(1): 0}
    counts = tally([where(router.decide(distinct(number), 40.0)) for number in range(64)], 2)
    assert min(counts) > 64 // 4  # what each has learned of its speed differs, and nothing else


@pytest.mark.parametrize("hung", [True, False], ids=["hung", "frozen"])
def test_a_scrape_that_hangs_or_stands_still_stops_no_routing(hung: bool) -> None:
    fleet = pool_of(2)
    router = router_of(fleet)
    full = Observation(0.0, 500, 200, 1.0, 1_000, 16)
    fleet.observe(POOL, address(0), full)
    assert {where(router.decide(distinct(number), 0.0)) for number in range(20)} == {address(1)}
    for second in range(1, 600):
        if not hung:
            fleet.observe(POOL, address(0), replace(full, seen_at=float(second)))
        fleet.observe(POOL, address(1), Observation(float(second), 0, 20, 0.1 + second / 1e6, 1_000, 16))
        router.snapshot(float(second))
    counts = tally([where(router.decide(distinct(number), 600.0)) for number in range(200)], 2)
    assert min(counts) > 0


def test_case_6_an_exporter_that_stands_still_at_nothing_writes_off_nobody_who_is_being_served() -> None:
    """Its word is that all of ours are lost. What was served there in the meantime shows that it is none."""
    fleet = pool_of(1)
    router = router_of(fleet)
    flights = [router.decide(distinct(number), 0.0) for number in range(20)]
    for decision in flights:
        router.first_token(decision.reservation, 50, 200, 0.1)
    for second in range(1, 60):
        fleet.observe(POOL, address(0), Observation(float(second), 0, 0, 0.0, 1_000, 16))
        if second % 5 == 0 and len(flights) > 10:
            router.final_token(flights.pop().reservation, 1_000, 10, None, float(second))
        assert in_flight(router) == {address(0): len(flights)}


def test_callers_that_never_report_leave_no_absurd_expectation() -> None:
    """The first of them is overdue and nothing was ever told of: what is ahead would be a guess."""
    router = router_of(pool_of(1))
    for number in range(1_000):
        decision = router.decide(distinct(number, 40_000), number / 10)
        assert decision.expected_ttft_ms < 60_000
    assert decision.expected_ttft_ms < 2_000


def test_case_7_an_endpoint_that_leaves_and_comes_back_never_goes_negative() -> None:
    fleet = pool_of(1)
    router = router_of(fleet)
    decision = router.decide(distinct(1), 0.0)
    fleet.set_pool(POOL, [])
    assert in_flight(router) == {}
    fleet.set_pool(POOL, [EndpointSpec(POOL, address(0), models=(MODEL,))])
    assert in_flight(router) == {address(0): 0}
    router.final_token(decision.reservation, 10, 10, 0, 1.0)
    assert in_flight(router) == {address(0): 0}


def test_case_9_final_gives_back_exactly_what_the_pick_reserved() -> None:
    router = router_of(pool_of(2))
    kept = router.decide(distinct(1), 0.0)
    before = router.snapshot(0.0)
    gone = router.decide(distinct(2, 40_000), 0.0)
    router.final_token(gone.reservation, 123, 456, 7, 1.0)
    after = router.snapshot(0.0)
    loads = [[(one.requests, one.prefill_tokens, one.decode_tokens) for one in state] for state in (before, after)]
    assert loads[0] == loads[1]
    assert kept.reservation != gone.reservation


def unevenness(fleets: Sequence[Fleet]) -> int:
    """How many more prompts one of four endpoints gets than another, from routers that see each other by scrapes."""
    routers = [router_of(fleet, seed) for seed, fleet in enumerate(fleets)]
    totals = dict.fromkeys(map(address, range(4)), 0)
    for number in range(40):
        for router in routers:
            totals[where(router.decide(distinct(number), number * 0.1))] += 1
        for fleet in fleets:
            for place, count in totals.items():
                fleet.observe(POOL, place, Observation(number * 0.1, waiting=count, running=0))
    return max(totals.values()) - min(totals.values())


def test_case_10_routers_that_share_only_scrapes_still_spread() -> None:
    assert unevenness([pool_of(4), pool_of(4)]) <= 3


def test_case_10_a_router_sees_by_scrapes_alone_what_others_have_sent() -> None:
    """The other one reaches two of the four."""
    assert unevenness([pool_of(2), pool_of(4)]) <= 4


def test_case_16_an_empty_pool_is_no_workers() -> None:
    fleet = pool_of(0)
    decision = router_of(fleet).decide(distinct(1), 0.0)
    assert decision.outcome is Outcome.NO_WORKERS
    assert decision.choice is None
    assert decision.reservation == 0


def test_case_18_a_model_scaled_to_zero_is_no_workers_naming_it() -> None:
    fleet = pool_of(3)
    for number in range(3):
        fleet.set_ready(POOL, address(number), ready=False)
    decision = router_of(fleet).decide(distinct(1), 0.0)
    assert decision.outcome is Outcome.NO_WORKERS
    assert "'m'" in decision.reason
    assert "3 not ready" in decision.reason


def test_case_19_a_draining_endpoint_gets_no_new_picks_and_keeps_its_flights() -> None:
    fleet = pool_of(2)
    router = router_of(fleet)
    first = router.decide(distinct(0), 0.0)
    fleet.set_draining(POOL, where(first), draining=True)
    assert where(first) not in {where(router.decide(distinct(number), 0.0)) for number in range(1, 20)}
    assert in_flight(router)[where(first)] == 1
    router.final_token(first.reservation, 10, 10, None, 1.0)
    assert in_flight(router)[where(first)] == 0


def test_case_21_an_unknown_model_is_no_workers_naming_it() -> None:
    decision = router_of(pool_of(2)).decide(prompt_of(b"hello", "nobody's"), 0.0)
    assert decision.outcome is Outcome.NO_WORKERS
    assert "nobody's" in decision.reason


def test_case_22_an_ipv6_endpoint_keeps_its_brackets() -> None:
    fleet, six = Fleet(), Address("[fd00::1]:8000")
    fleet.set_pool(POOL, [EndpointSpec(POOL, six, models=(MODEL,))])
    fleet.set_ready(POOL, six, ready=True)
    assert where(router_of(fleet).decide(distinct(1), 0.0)) == "[fd00::1]:8000"


def test_case_37_a_worker_that_fails_fast_gets_less_than_its_share() -> None:
    router, picks = router_of(pool_of(3)), []
    for number in range(300):
        now = number * 0.05
        decision = router.decide(distinct(number), now)
        picks.append(where(decision))
        broken = where(decision) == address(0)
        router.first_token(decision.reservation, 1.0 if broken else 400.0, 503 if broken else 200, now)
        router.final_token(decision.reservation, 1_000, 0 if broken else 100, None, now)
    assert tally(picks, 3)[0] < 30


def test_case_39_an_unauthorized_backend_fails_over_and_spares_its_sibling() -> None:
    fleet = Fleet()
    names = [ObjectRef("default", name) for name in ("a", "b")]
    fleet.set_backends([BackendSpec(name, Api.OPENAI_CHAT, {MODEL: f"{name.name}-model"}) for name in names])
    router = router_of(fleet)
    first = router.decide(distinct(0), 0.0)
    assert isinstance(first.choice, BackendChoice)
    router.abort(first.reservation, AbortReason.BACKEND_UNAUTHORIZED, 0.0)
    chosen = [router.decide(distinct(number), 1.0).choice for number in range(100)]
    others = {one.backend for one in chosen if isinstance(one, BackendChoice)}
    assert others == {name for name in names if name != first.choice.backend}
    later = [router.decide(distinct(number), 31.0 + number).choice for number in range(100)]
    assert first.choice.backend in {one.backend for one in later if isinstance(one, BackendChoice)}


# --- priority -----------------------------------------------------------------------------------


def refused(load: float, classes: Sequence[QosClass], rules: AdmissionRules) -> Counter[QosClass]:
    """Whom a simulated fleet of two refuses."""
    engines = (ENGINE,) * 2
    arrivals = at_load(WORKLOADS["documents"](Random(101), 300, 3.0), engines, load)
    asked = [structs.replace(one, qos=classes[place % len(classes)]) for place, one in enumerate(arrivals)]
    jobs = ClusterRun(FleetOptions(engines, "expected_latency", admission=rules)).play(asked).jobs
    return Counter(job.arrival.qos for job in jobs if job.finished_at is None)


def test_case_45_at_95_percent_of_the_load_nobody_interactive_is_refused() -> None:
    assert not refused(0.95, [QosClass.INTERACTIVE], AdmissionRules())


@pytest.mark.parametrize(("load", "room"), [(1.5, 10), (2.0, 30)])
def test_case_45_past_the_load_deferrable_is_refused_then_batch_and_nobody_interactive(load: float, room: int) -> None:
    shed = refused(load, list(QosClass), AdmissionRules(waiting_max=room))
    assert shed[QosClass.DEFERRABLE] > 0
    assert shed[QosClass.DEFERRABLE] > shed[QosClass.BATCH]
    assert not shed[QosClass.INTERACTIVE]


def test_case_40_batch_is_served_while_interactive_alone_is_more_than_the_fleet_can_do() -> None:
    classes = [QosClass.INTERACTIVE] * 4 + [QosClass.BATCH]
    assert not refused(1.6, classes, AdmissionRules())

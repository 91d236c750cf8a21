"""When a request is held, when it goes, and what it is told."""

from random import Random
from types import MappingProxyType

import pytest
from msgspec.structs import replace

from kinference.core.admission import LOOK_S, OVERDUE_MAX, Admission
from kinference.core.decision import BackendChoice, Decision, EndpointChoice
from kinference.core.fleet import BackendSpec, EndpointSpec, Fleet, Observation
from kinference.core.pick import Router
from kinference.core.policy import ModelRule, RoutingRules, Target, TargetKind
from kinference.core.request import Request
from kinference.core.rooms import TRIED
from kinference.core.turns import Waiting
from kinference.core.waiting import CLASS_RULES, AdmissionRules, ClassRule
from kinference.ids import Address, ObjectRef, Seconds
from kinference.vocabulary import AbortReason, Api, Outcome, QosClass

POOL, CLOUD = ObjectRef("default", "pool"), ObjectRef("default", "cloud")
CHAT = Request("m", Api.OPENAI_CHAT, (), 40_000)
INTERACTIVE, BATCH, DEFERRABLE = QosClass


def chat(name: str = "", qos: QosClass = INTERACTIVE, tenant: str = "", size: int = 40_000) -> Request:
    """Ten thousand tokens: a second's work, four times what makes a destination saturated."""
    return replace(CHAT, prompt=(name.encode().ljust(size, b"."),), prompt_bytes=size, qos=qos, tenant=tenant)


class World:
    """Some engines behind admission, and how long prompts wait for each other there is known."""

    def __init__(
        self,
        size: int = 1,
        rules: AdmissionRules | None = None,
        routing: RoutingRules | None = None,
        *,
        is_cold: bool = False,
    ) -> None:
        self.fleet = Fleet()
        self.fleet.set_pool(POOL, [EndpointSpec(POOL, Address(f"h{n}:1"), models=("m",)) for n in range(size)])
        for n in range(size):
            self.fleet.set_ready(POOL, Address(f"h{n}:1"), ready=True)
        self.router = Router(self.fleet, routing or RoutingRules(), Random(1))
        self.admission = Admission(self.router, rules or AdmissionRules())
        if not is_cold:
            self.learn(TRIED + size)

    def learn(self, prompts: int) -> None:
        """So many prompts at once have come to their first tokens just when they were expected to."""
        decisions = [self.router.decide(chat(f"before {number}"), 0.0) for number in range(prompts)]
        for decision in decisions:
            self.router.first_token(decision.reservation, decision.expected_ttft_ms, 200, 0.0)
            self.router.abort(decision.reservation, AbortReason.UNSPECIFIED, 0.0)

    def go(self, request: Request, now: Seconds = 0.0) -> Decision:
        decision = self.admission.admit(request, now)
        assert isinstance(decision, Decision)
        return decision

    def hold(self, request: Request, now: Seconds = 0.0) -> Waiting:
        waiting = self.admission.admit(request, now)
        assert isinstance(waiting, Waiting)
        return waiting

    def end(self, decision: Decision, now: Seconds) -> None:
        self.router.first_token(decision.reservation, 1_020.0, 200, now)
        self.router.final_token(decision.reservation, 10_000, 10, None, now)

    def released(self, now: Seconds) -> list[tuple[Waiting, Decision]]:
        return [(one.waiting, one.decision) for one in self.admission.release(now)]


def test_nobody_waits_while_anyone_can_start_soon() -> None:
    world = World(size=2)
    assert {world.go(chat(name)).choice for name in "ab"} == {
        EndpointChoice(POOL, Address(f"h{n}:1"), "m", generation=n + 1) for n in range(2)
    }


def test_past_the_knee_a_request_is_held_and_goes_when_an_engine_is_done() -> None:
    world = World()
    first = world.go(chat("a"))
    waiting = world.hold(chat("b"), 0.1)
    assert world.released(0.1) == []
    world.end(first, 0.2)
    [(who, decision)] = world.released(0.2)
    assert who is waiting
    assert decision.outcome is Outcome.OK
    assert decision.reason.startswith("waited 100 ms until an engine could start it; expect ")
    assert len(world.admission) == 0
    assert world.admission.deadline(0.2) is None


def test_what_an_engine_must_have_computed_by_now_makes_room_before_it_reports() -> None:
    world = World()
    world.go(chat("a"))
    world.hold(chat("b"), 0.0)
    due = world.admission.deadline(0.0)
    assert due is not None
    assert world.released(0.5) == []
    assert len(world.released(0.9)) == 1


def test_callers_that_never_report_wait_for_nobody_once_that_is_known() -> None:
    """The contract lets them: a Pick may be all that is ever heard of a request."""
    world, held, gone = World(is_cold=True), [], 0
    for tick in range(400):
        now = tick / 10
        if tick % 10 == 0:
            world.fleet.observe(POOL, Address("h0:1"), Observation(now, waiting=0, running=0))
        if isinstance(world.admission.admit(chat(str(tick)), now), Waiting):
            held.append(now)
        gone += len(world.released(now))
    assert held
    assert held[-1] < 6.0
    assert gone == len(held)


def test_without_metrics_too_nobody_is_held_for_ever_on_a_guess() -> None:
    world = World(is_cold=True)
    world.go(chat("a"))
    world.hold(chat("b"), 0.1)
    assert [decision.outcome for _, decision in world.released(6.0)] == [Outcome.OK]
    assert all(isinstance(world.admission.admit(chat(str(number)), 6.1), Decision) for number in range(50))


def test_picks_whose_time_is_over_with_nothing_heard_of_them_hold_nobody_back() -> None:
    world, sent = World(is_cold=True), []
    for second in range(120):
        now = float(second)
        admitted = world.admission.admit(chat(str(second)), now)
        released = [decision for _, decision in world.released(now)]
        sent += [(now, one) for one in (admitted, *released) if isinstance(one, Decision)]
        while sent and sent[0][0] <= now - 30.0:
            world.router.expire(sent.pop(0)[1].reservation, True, now)
        assert second < 4 or len(world.admission) == 0


def test_once_it_is_known_that_nobody_reports_nobody_waits_for_a_guess_until_somebody_does() -> None:
    world, first = World(is_cold=True), []
    for second in range(5):
        admitted = world.admission.admit(chat(str(second)), float(second))
        first += [admitted, *(decision for _, decision in world.released(float(second)))]
    assert len(world.admission) == 0
    for one in first:
        if isinstance(one, Decision):
            world.router.abort(one.reservation, AbortReason.UNSPECIFIED, 10.0)
    again = [world.go(chat(f"again {number}"), 20.0) for number in range(20)]
    world.router.first_token(again[0].reservation, 1_000.0, 200, 21.0)
    world.hold(chat("once more"), 21.1)


def test_an_engine_that_says_that_requests_wait_there_is_believed() -> None:
    world = World()
    world.go(chat("a"))
    for second in range(8):
        world.fleet.observe(POOL, Address("h0:1"), Observation(float(second), waiting=30, running=1))
    world.hold(chat("b"), 7.5)


def test_those_that_wait_leave_by_class() -> None:
    world = World()
    running = world.go(chat("a"))
    held = [world.hold(chat(str(qos), qos)) for qos in (DEFERRABLE, BATCH, INTERACTIVE)]
    order = []
    for now in (1.02, 2.04, 3.06):
        world.end(running, now)
        [(who, running)] = world.released(now)
        order.append(who)
    assert order == held[::-1]


def test_deferrable_work_goes_only_where_no_prompt_is_to_be_computed() -> None:
    world = World()
    first = world.go(chat("a", size=800))
    deferrable = world.hold(chat("b", DEFERRABLE, size=800))
    assert world.released(0.0) == []
    world.end(first, 0.04)
    assert [who for who, _ in world.released(0.04)] == [deferrable]


def test_a_held_request_waits_for_its_warm_engine_while_a_cold_one_has_room() -> None:
    world = World(size=2)
    world.end(warm := world.go(chat("warm")), 1.0)
    turn, longer = (
        replace(chat("warm"), prompt=(*chat("warm").prompt, sign * size), prompt_bytes=40_000 + size)
        for sign, size in ((b"?", 2_000), (b"!", 20_000))
    )
    assert world.go(longer, 1.0).choice == warm.choice
    busy = world.go(chat("other"), 1.0)
    assert busy.choice != warm.choice
    waiting = world.hold(turn, 1.0)
    world.end(busy, 1.05)
    assert world.released(1.05) == [], "its cache is worth more than the rest of the wait"
    [(who, decision)] = world.released(1.43)
    assert (who, decision.choice) == (waiting, warm.choice)


def test_work_is_taken_over_by_an_engine_that_nobody_waits_for() -> None:
    world = World(size=2)
    world.end(world.go(chat("warm")), 1.0)
    turns = [
        replace(chat("warm"), prompt=(*chat("warm").prompt, bytes([number]) * 40_000), prompt_bytes=80_000)
        for number in range(6)
    ]
    busy = [world.go(chat("a"), 1.0), world.go(chat("b"), 1.0)]
    for turn in turns:
        world.hold(turn, 1.0)
    for decision in busy:
        world.end(decision, 2.0)
    places = {decision.choice for _, decision in world.released(2.0)}
    assert len(places) == 2


def test_room_goes_to_the_first_in_turn_whoever_else_is_bound_for_it() -> None:
    world = World(size=2)
    early, late = world.go(chat("a", size=60_000)), world.go(chat("b", size=400_000))
    assert early.choice != late.choice
    urgent = world.hold(chat("c", size=4_000), 0.01)
    others = [world.hold(chat(f"d{number}", size=200_000), 0.02) for number in range(6)]
    assert len({one.bound_for for one in others}) == 2
    assert urgent.bound_for not in str(late.choice)
    world.end(late, 0.1)  # far sooner than was to be expected
    [(who, decision), *_] = world.released(0.1)
    assert (who, decision.choice) == (urgent, late.choice)


def test_whoever_asked_may_leave() -> None:
    world = World()
    first = world.go(chat("a"))
    world.admission.withdraw(world.hold(chat("b")))
    assert len(world.admission) == 0
    world.end(first, 0.1)
    assert world.released(0.1) == []
    world.go(chat("c"), 0.1)


def test_a_wait_is_bounded_and_its_end_says_when_to_come_back() -> None:
    world = World()
    world.go(chat("a", size=8_000_000))
    waiting = world.hold(chat("b"))
    until = CLASS_RULES[INTERACTIVE].wait_max_s
    assert world.released(until - 1) == []
    [(who, decision)] = world.released(until)
    assert who is waiting
    assert decision.outcome is Outcome.POLICY_REJECTED
    assert decision.reason == f"saturated: waited {until:.0f} s and no engine had room; try again in 1 s"
    assert decision.retry_after == 1.0


def test_a_full_line_sheds_deferrable_then_batch_then_refuses() -> None:
    world = World(rules=AdmissionRules(waiting_max=2))
    world.go(chat("a"))
    batch, deferrable = world.hold(chat("b", BATCH)), world.hold(chat("d", DEFERRABLE))
    world.hold(chat("1"))
    [(who, decision)] = world.released(0.0)
    assert (who, decision.outcome) == (deferrable, Outcome.POLICY_REJECTED)
    assert decision.reason.startswith("saturated: more urgent requests took the last of 2 places")
    world.hold(chat("2"))
    assert [who for who, _ in world.released(0.0)] == [batch]
    refused = world.go(chat("3"))
    assert refused.outcome is Outcome.POLICY_REJECTED
    assert refused.reason.startswith("saturated: 2 requests wait already; try again in ")
    assert refused.retry_after is not None
    assert refused.retry_after >= 1


def test_whom_nobody_can_serve_any_more_is_told_so() -> None:
    world = World()
    first = world.go(chat("a"))
    world.hold(chat("b"))
    world.fleet.set_pool(POOL, [])
    world.router.abort(first.reservation, AbortReason.NOT_DISPATCHED, 0.1)
    [(_, decision)] = world.released(0.1)
    assert decision.outcome is Outcome.NO_WORKERS
    assert decision.reason == "model 'm' has no endpoint; add one to its pool, or see why none is discovered"


def test_whoever_waits_goes_on_waiting_while_its_only_engine_is_away() -> None:
    world = World()
    first = world.go(chat("a"))
    waiting = [world.hold(chat(name)) for name in "bcd"]
    world.fleet.set_ready(POOL, Address("h0:1"), ready=False)
    world.router.abort(first.reservation, AbortReason.NOT_DISPATCHED, 0.1)
    assert [world.released(tick / 10) for tick in range(1, 100)] == [[]] * 99
    world.fleet.set_ready(POOL, Address("h0:1"), ready=True)
    [(who, decision)] = world.released(10.2)
    assert who in waiting
    assert decision.outcome is Outcome.OK


def test_whoever_waits_in_vain_for_engines_that_are_away_is_told_that_nobody_works() -> None:
    world = World()
    first = world.go(chat("a"))
    world.hold(chat("b"))
    world.fleet.set_ready(POOL, Address("h0:1"), ready=False)
    world.router.abort(first.reservation, AbortReason.NOT_DISPATCHED, 0.1)
    [(_, decision)] = world.released(CLASS_RULES[INTERACTIVE].wait_max_s)
    assert decision.outcome is Outcome.NO_WORKERS
    assert decision.reason.startswith("no worker for model 'm': 1 not ready; ")


def test_an_engine_that_dies_does_not_take_those_that_wait_for_it_along() -> None:
    """What runs there fails, one after the other; of those that wait a few find out as well, and later one a trial."""
    world = World()
    running = [world.go(chat("a"))]
    for name in range(100):
        world.hold(chat(str(name)))
    fates = list[Decision]()
    for tick in range(1, 200):
        now = tick / 10
        for decision in running:
            world.router.first_token(decision.reservation, 1.0, 0, now)
            world.router.abort(decision.reservation, AbortReason.NOT_DISPATCHED, now)
        running = [decision for _, decision in world.released(now)]
        assert len(running) <= 1
        fates += running
    assert all(decision.choice is not None for decision in fates)
    assert len(fates) <= 2 + 5, "two until its circuit opens, and the trials of twenty seconds"
    world.end(running[0] if running else world.released(40.0)[0][1], 40.1)
    assert world.released(40.1), "the trial was good"


def test_those_whose_engines_all_failed_are_told_so_with_when_to_try_again() -> None:
    world = World()
    first = world.go(chat("a"))
    world.hold(chat("b"))
    for _ in range(3):
        world.router.first_token(first.reservation, 1.0, 503, 59.5)
        world.router.abort(first.reservation, AbortReason.UNSPECIFIED, 59.5)
        first = world.router.decide(chat("c"), 59.5)
    [(_, decision)] = world.released(CLASS_RULES[INTERACTIVE].wait_max_s)
    assert decision.outcome is Outcome.NO_WORKERS
    assert "1 with an open circuit; default/pool/h0:1: with an open circuit: status 503" in decision.reason
    assert decision.retry_after == 1.0


def test_whoever_waits_for_an_engine_that_dies_is_bound_for_another() -> None:
    world = World(size=2)
    here, there = world.go(chat("a")), world.go(chat("b"))
    assert isinstance(here.choice, EndpointChoice)
    waiting = [world.hold(chat(str(number))) for number in range(20)]
    assert {one.bound_for for one in waiting} == {f"default/pool/h{n}:1" for n in range(2)}
    world.fleet.set_ready(POOL, here.choice.address, ready=False)
    world.router.abort(here.reservation, AbortReason.NOT_DISPATCHED, 0.1)
    now, gone = 0.1, list[Decision]()
    while waiting and now < 55.0:
        for who, decision in world.released(now):
            waiting.remove(who)
            gone.append(decision)
            there = decision
        world.end(there, now)
        now += 0.05
    assert len(gone) == 20
    assert {decision.choice for decision in gone} == {there.choice} != {here.choice}


def test_whoever_waits_where_nobody_works_any_more_is_spilled_to_a_fallback() -> None:
    targets = (Target(TargetKind.POOL, POOL), Target(TargetKind.BACKEND, CLOUD, priority=1))
    world = World(routing=RoutingRules(models=(ModelRule("m", targets),)))
    first = world.go(chat("a", size=20_000))
    world.hold(chat("b", size=20_000))
    world.fleet.set_backends([BackendSpec(CLOUD, Api.OPENAI_CHAT, models={"m": "m"})])
    world.fleet.set_ready(POOL, Address("h0:1"), ready=False)
    world.router.abort(first.reservation, AbortReason.NOT_DISPATCHED, 0.1)
    [(_, decision)] = world.released(0.1)
    assert isinstance(decision.choice, BackendChoice)


def test_a_thousand_whose_time_is_over_at_once_are_told_in_portions() -> None:
    world = World()
    world.go(chat("a", size=8_000_000))
    for number in range(OVERDUE_MAX + 10):
        world.hold(chat(str(number), size=4_000))
    until = CLASS_RULES[INTERACTIVE].wait_max_s
    assert [len(world.released(until)) for _ in range(3)] == [OVERDUE_MAX, 10, 0]


def test_a_fallback_takes_what_would_wait_longer_than_going_there_takes() -> None:
    targets = (Target(TargetKind.POOL, POOL), Target(TargetKind.BACKEND, CLOUD, priority=1))
    world = World(routing=RoutingRules(models=(ModelRule("m", targets),)))
    world.fleet.set_backends([BackendSpec(CLOUD, Api.OPENAI_CHAT, models={"m": "m"})])
    world.go(chat("a", size=20_000))
    world.hold(chat("b", size=20_000))
    decision = None
    for name in "cdefgh":
        decision = world.admission.admit(chat(name, size=20_000), 0.0)
        if isinstance(decision, Decision):
            break
    assert isinstance(decision, Decision)
    assert isinstance(decision.choice, BackendChoice)
    assert decision.reason.startswith("spilled over, for waiting would have taken longer; ")


def test_policies_without_times_and_admission_off_decide_at_once() -> None:
    for world in (World(routing=RoutingRules(policy="least_request")), World(rules=AdmissionRules(enabled=False))):
        for name in "abc":
            assert world.go(chat(name)).outcome is Outcome.OK


def test_one_full_pool_holds_up_no_other() -> None:
    world = World()
    spare = ObjectRef("default", "spare")
    world.fleet.set_pool(spare, [EndpointSpec(spare, Address("s:1"), models=("m",))])
    world.fleet.set_ready(spare, Address("s:1"), ready=True)
    world.go(replace(chat("a"), pool=POOL))
    world.hold(replace(chat("b"), pool=POOL))
    assert world.go(replace(chat("c"), pool=spare)).outcome is Outcome.OK


def test_an_empty_engine_takes_what_its_scrape_has_no_room_for() -> None:
    world = World()
    full = Observation(0.0, waiting=0, running=0, kv_usage_ratio=1.0, kv_blocks=10, block_tokens=16)
    world.fleet.observe(POOL, Address("h0:1"), full)
    assert world.go(chat("a")).outcome is Outcome.OK


def both_begun(world: World) -> tuple[Decision, Waiting, Decision]:
    """Two engines decode what they were sent; one that begins like the first is held."""
    warm, cold = world.go(chat("a")), world.go(chat("b"))
    waiting = world.hold(chat("a"), 0.1)
    for decision in (warm, cold):
        world.router.first_token(decision.reservation, 1_020.0, 200, 1.0)
    return warm, waiting, cold


def tell(world: World, decision: Decision, waiting: int, running: int, kv_usage_ratio: float) -> None:
    assert isinstance(decision.choice, EndpointChoice)
    seen = Observation(1.0, waiting, running, kv_usage_ratio, kv_blocks=10_000, block_tokens=16)
    world.fleet.observe(POOL, decision.choice.address, seen)


def test_who_is_held_waits_for_room_where_its_prefix_is_cached() -> None:
    world = World(size=2)
    warm, waiting, _ = both_begun(world)
    tell(world, warm, 0, 50, 1.0)
    assert world.released(1.1) == [], "somebody ends soon among so many"
    tell(world, warm, 0, 50, 0.5)
    [(who, decision)] = world.released(1.2)
    assert (who, decision.choice) == (waiting, warm.choice)


def test_who_is_held_goes_where_there_is_room_when_that_is_sooner() -> None:
    world = World(size=2)
    warm, waiting, cold = both_begun(world)
    tell(world, warm, 20, 10, 1.0)
    [(who, decision)] = world.released(1.1)
    assert (who, decision.choice) == (waiting, cold.choice)


def test_new_rules_hold_for_the_next_one() -> None:
    world = World()
    world.go(chat("a"))
    world.hold(chat("b"))
    short = MappingProxyType({qos: ClassRule(1.0, 2.0) for qos in QosClass})
    world.admission.reconfigure(AdmissionRules(classes=short))
    later = world.hold(chat("c"), 0.1)
    assert later.until == 2.1


def test_people_see_who_waits() -> None:
    world = World()
    world.go(chat("a"))
    world.hold(chat("b", BATCH, "one"), 0.1)
    world.hold(chat("c", INTERACTIVE, "two"), 0.2)
    [line] = world.admission.snapshot(0.6)
    assert (line.pools, line.tenants, line.longest_s) == (("default/pool",), 2, 0.5)
    assert line.requests == {INTERACTIVE: 1, BATCH: 1}
    assert [(one.qos, one.tenant, one.requests, one.longest_s) for one in line.groups] == [
        (BATCH, "one", 1, 0.5),
        (INTERACTIVE, "two", 1, 0.6 - 0.2),
    ]
    assert line.bound_ms == {"default/pool/h0:1": line.work_ms}
    assert line.why.startswith("each of 1 destinations has prompts to compute, the least of them 400 ms; ")
    world.fleet.set_ready(POOL, Address("h0:1"), ready=False)
    assert world.admission.snapshot(0.6)[0].why.startswith("none of 1 destinations can be used")
    assert line.work_ms > 1_000


def test_who_waits_goes_at_once_when_nobody_is_to_wait_any_more() -> None:
    world = World()
    world.go(chat())
    held = [world.hold(chat(name, qos)) for name, qos in (("a", INTERACTIVE), ("b", BATCH), ("c", DEFERRABLE))]
    assert world.released(0.0) == []
    world.admission.reconfigure(AdmissionRules(enabled=False))
    released = world.released(0.0)
    assert [waiting for waiting, _ in released] == held
    assert all(decision.choice is not None for _, decision in released)
    assert (len(world.admission), world.admission.deadline(0.0)) == (0, None)


def test_nobody_looks_again_each_moment_for_a_report_that_is_late() -> None:
    """The first prompt must be computed by now, and nothing but its report makes room for the next one."""
    world = World()
    world.go(chat("a"))
    world.hold(chat("b", size=16_000), 0.0)
    [_] = world.released(0.9)
    world.hold(chat("c"), 0.9)
    world.fleet.observe(POOL, Address("h0:1"), Observation(1.5, waiting=1, running=1))
    assert world.released(1.5) == []
    assert world.admission.deadline(1.5) == 1.5 + LOOK_S


def test_nobody_waits_longer_for_an_engine_of_unknown_pace_than_it_takes_to_learn_it() -> None:
    """Sixty-four at once, and an engine that computes any number side by side in a tenth of what was guessed."""
    world = World(is_cold=True)
    running, held, now = list[Decision](), 0, 0.0
    for number in range(64):
        one = world.admission.admit(chat(str(number)), now)
        held += isinstance(one, Waiting)
        running += [one] if isinstance(one, Decision) else []
    assert held == 63
    rounds = []
    while running:
        now += 0.1
        rounds.append(len(running))
        for one in running:
            world.router.first_token(one.reservation, 100.0, 200, now)
            world.router.final_token(one.reservation, 10_000, 10, 0, now)
        running = [decision for _, decision in world.released(now)]
    assert rounds[:2] == [1, TRIED], "as many as it takes to learn whether they wait for each other"
    assert len(rounds) <= 4
    assert sum(rounds) == 64


def test_an_engine_whose_first_tokens_always_take_a_second_is_not_taken_for_one_that_computes_slowly() -> None:
    """Sixty-four clients, each with another prompt when one is answered; it tells nothing of itself."""
    world, running, now = World(is_cold=True), list[Decision](), 0.0
    for _ in range(12):
        for _ in range(64 - len(running) - len(world.admission)):
            one = world.admission.admit(chat(size=4_000), now)
            running += [one] if isinstance(one, Decision) else []
        answered, now = running, now + 1.0
        for one in answered:
            world.router.first_token(one.reservation, 1_000.0, 200, now)
            world.router.final_token(one.reservation, 1_000, 10, 0, now)
        running = [decision for _, decision in world.released(now)]
    assert len(answered) == 64


def test_an_engine_that_is_as_slow_as_was_guessed_gets_no_more_than_it_can_start_once_that_is_known() -> None:
    world = World(is_cold=True)
    running = [world.go(chat("a"))]
    for number in range(64):
        world.hold(chat(str(number)))
    now, rounds = 0.0, []
    while len(world.admission) > 10:
        rounds.append(len(running))
        for one in running:
            now += 1.0
            world.router.first_token(one.reservation, one.expected_ttft_ms, 200, now)
            world.router.final_token(one.reservation, 10_000, 10, 0, now)
        running = [decision for _, decision in world.released(now)]
    assert rounds[:2] == [1, TRIED]
    assert set(rounds[3:]) == {1}


def test_an_engine_that_tells_of_itself_gets_no_more_than_it_can_start_from_the_first_report_on() -> None:
    world = World(is_cold=True)
    world.fleet.observe(POOL, Address("h0:1"), Observation(0.0, waiting=0, running=0))
    first = world.go(chat("a"))
    for number in range(3):
        world.hold(chat(str(number)))
    world.end(first, 1.0)
    assert len(world.released(1.0)) == 1


def test_an_engine_that_comes_back_gets_no_flood_for_the_time_in_which_nobody_reported() -> None:
    world = World()
    world.go(chat("a"))  # whose caller is never heard of again
    held = [world.hold(chat(str(number)), 0.1) for number in range(30)]
    world.fleet.set_ready(POOL, Address("h0:1"), ready=False)
    assert world.released(1.0) == []
    world.fleet.set_ready(POOL, Address("h0:1"), ready=True)
    now = CLASS_RULES[INTERACTIVE].wait_max_s - 1.0
    assert [who for who, _ in world.released(now)] == held[:1]


def test_a_clock_that_is_set_back_keeps_nobody_waiting() -> None:
    world = World(size=2)
    world.end(warm := world.go(chat("warm")), 1_000.0)
    longer, turn = (
        replace(chat("warm"), prompt=(*chat("warm").prompt, sign * 20_000), prompt_bytes=60_000)
        for sign in (b"!", b"?")
    )
    assert world.go(longer, 1_000.0).choice == warm.choice
    busy = world.go(chat("other"), 1_000.0)
    waiting = world.hold(turn, 1_000.0)
    world.end(busy, 1_000.01)
    assert world.released(1_000.01) == [], "looked at, and better off where it waits"
    world.fleet.set_ready(POOL, Address("h0:1" if "h0:1" in waiting.bound_for else "h1:1"), ready=False)
    assert [who for who, _ in world.released(1.0)] == [waiting]


@pytest.mark.parametrize("stuck", [3, 8, 500])
def test_those_that_nobody_can_serve_just_now_stand_in_nobodys_way(stuck: int) -> None:
    """However many of the window have been in vain to the only engine that can be used, those behind them go there."""
    world = World(2)
    first, second = Address("h0:1"), Address("h1:1")
    busy = [world.go(chat(f"{n}")) for n in range(2)]
    for n in range(stuck):
        world.hold(replace(chat(f"again {n}"), failed=frozenset({first}), output_tokens=n % 3 or None), 0.1)
    for n in range(4):
        world.hold(chat(f"other {n}"), 0.1)
    world.fleet.set_draining(POOL, second, draining=True)
    for decision in busy:
        assert isinstance(decision.choice, EndpointChoice)
        if decision.choice.address == first:
            world.end(decision, 0.2)
    went = 0
    for tick in range(100):
        for _, decision in world.released(0.2 + tick * 0.02):
            went += 1
            world.end(decision, 0.2 + tick * 0.02)
    assert went == 4

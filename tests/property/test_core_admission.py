"""Admission under any traffic: nobody is lost or answered twice, classes keep their order, tenants their shares."""

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from kinference.core.admission import Admission
from kinference.core.decision import Decision, EndpointChoice
from kinference.core.fleet import EndpointSpec, Fleet
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules
from kinference.core.request import Request
from kinference.core.rooms import TRIED
from kinference.core.turns import Waiting
from kinference.core.waiting import AGED_TURN, CLASS_RULES, AdmissionRules
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import AbortReason, Api, Outcome, QosClass

POOL = ObjectRef("default", "pool")
STEP_S = 0.05
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from(list(QosClass)), st.sampled_from("abc"), st.integers(1, 40)),
        st.tuples(st.just("end"), st.integers(0, 10)),
        st.tuples(st.just("leave"), st.integers(0, 10)),
        st.tuples(st.just("pass"), st.integers(1, 2_000)),
    ),
    max_size=60,
)


def router(size: int) -> Router:
    fleet = Fleet()
    fleet.set_pool(POOL, [EndpointSpec(POOL, Address(f"h{number}:1"), models=("m",)) for number in range(size)])
    for number in range(size):
        fleet.set_ready(POOL, Address(f"h{number}:1"), ready=True)
    return Router(fleet, RoutingRules(), Random(1))


def request(qos: QosClass, tenant: str, kilobytes: int, number: int) -> Request:
    prompt = f"{number} ".encode().ljust(1_000 * kilobytes, b".")
    return Request("m", Api.OPENAI_CHAT, (prompt,), len(prompt), qos=qos, tenant=tenant)


@settings(max_examples=80, deadline=None)
@given(steps=STEPS, size=st.integers(1, 3), waiting_max=st.integers(1, 12))
def test_whoever_asks_is_answered_once_and_nothing_is_left(steps: list[tuple], size: int, waiting_max: int) -> None:  # type: ignore[type-arg] # of several shapes
    core = router(size)
    admission = Admission(core, AdmissionRules(waiting_max=waiting_max, start_within_ms=50.0))
    now, held, running = 0.0, dict[int, Waiting](), list[Decision]()

    def settle() -> None:
        for one in admission.release(now):
            assert held.pop(one.waiting.number) is one.waiting
            if one.decision.choice is not None:
                running.append(one.decision)
            else:
                assert one.decision.outcome is Outcome.POLICY_REJECTED
                assert one.decision.retry_after is not None

    for number, (what, *rest) in enumerate(steps):
        if what == "ask":
            qos, tenant, kilobytes = rest
            answer = admission.admit(request(qos, tenant, kilobytes, number), now)
            if isinstance(answer, Waiting):
                held[answer.number] = answer
            elif answer.choice is not None:
                running.append(answer)
        elif what == "end" and running:
            done = running.pop(rest[0] % len(running))
            core.first_token(done.reservation, 100.0, 200, now)
            core.final_token(done.reservation, done.prompt_tokens, 10, 0, now)
        elif what == "leave" and held:
            admission.withdraw(held.pop(sorted(held)[rest[0] % len(held)]))
        elif what == "pass":
            now += rest[0] / 1e3
        settle()
        assert len(admission) == len(held) <= waiting_max
        due = admission.deadline(now)
        assert (due is None) == (not held)
        assert due is None or due > now
    now += max(rule.wait_max_s for rule in CLASS_RULES.values())
    settle()
    assert not held
    for done in running:
        core.final_token(done.reservation, 1, 1, 0, now)
    assert all(one.requests == one.prefill_tokens == 0 for one in core.snapshot(now))


class Saturated:
    """One engine that has always something to do, and who got it."""

    def __init__(self) -> None:
        self.core = router(1)
        self.admission = Admission(self.core, AdmissionRules())
        self.now = 0.0
        before = [
            self.core.decide(request(QosClass.INTERACTIVE, "", 40, -number), 0.0) for number in range(1, TRIED + 2)
        ]
        for one in before:  # so that it is known how long prompts wait for each other
            self.core.first_token(one.reservation, one.expected_ttft_ms, 200, 0.0)
            self.core.abort(one.reservation, AbortReason.UNSPECIFIED, 0.0)
        first = self.admission.admit(request(QosClass.INTERACTIVE, "", 40, 0), 0.0)
        assert isinstance(first, Decision)
        self.running = first

    def ask(self, qos: QosClass, tenant: str, kilobytes: int = 40) -> None:
        number = self.core.snapshot(self.now)[0].picks * 1_000 + len(self.admission)
        assert isinstance(self.admission.admit(request(qos, tenant, kilobytes, number), self.now), Waiting)

    def serve(self) -> Waiting:
        """The engine is done with what it has: who is next?"""
        self.now += STEP_S
        running = self.running
        self.core.first_token(running.reservation, running.expected_ttft_ms, 200, self.now)
        self.core.final_token(running.reservation, running.prompt_tokens, 10, 0, self.now)
        (one,) = self.admission.release(self.now)
        assert isinstance(one.decision.choice, EndpointChoice)
        self.running = one.decision
        return one.waiting


@settings(max_examples=20, deadline=None)
@given(greed=st.integers(2, 12), size=st.integers(20, 60))
def test_a_tenant_that_asks_for_more_gets_no_more_than_its_share(greed: int, size: int) -> None:
    world = Saturated()
    work = Counter[str]()
    for _ in range(40):
        for _ in range(greed):
            world.ask(QosClass.INTERACTIVE, "greedy", size)
        world.ask(QosClass.INTERACTIVE, "modest", 40)
        waiting = world.serve()
        work[waiting.request.tenant] += waiting.request.prompt_bytes
    assert work["modest"] >= 0.8 * min(work["greedy"], 40_000 * 20)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1_000))
def test_interactive_leaves_before_batch_save_for_one_in_so_many_that_has_aged(seed: int) -> None:
    world, rng, order = Saturated(), Random(seed), list[QosClass]()
    for _ in range(30):
        world.ask(rng.choice([QosClass.BATCH, QosClass.DEFERRABLE]), "b")
    world.now += CLASS_RULES[QosClass.BATCH].objective_s / 2
    for _ in range(4 * AGED_TURN):
        world.ask(QosClass.INTERACTIVE, "a")
        order.append(world.serve().request.qos)
    assert set(order) == {QosClass.INTERACTIVE}, "nobody has waited out the objective yet"
    world.now += CLASS_RULES[QosClass.BATCH].objective_s / 2
    order.clear()
    for _ in range(4 * AGED_TURN):
        world.ask(QosClass.INTERACTIVE, "a")
        order.append(world.serve().request.qos)
    assert Counter(order) == {QosClass.INTERACTIVE: 4 * AGED_TURN - 4, QosClass.BATCH: 4}

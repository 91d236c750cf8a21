"""The whole core under any sequence of calls: counts, determinism, and what must not change the pick."""

import hashlib
import os
import subprocess
import sys
from itertools import permutations
from math import isfinite
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kinference.core.decision import EndpointChoice
from kinference.core.fleet import EndpointSpec, Fleet, Observation
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules
from kinference.core.request import Request
from kinference.ids import Address, ObjectRef, ReservationId
from kinference.vocabulary import AbortReason, Api, Outcome, QosClass

POOL = ObjectRef("default", "pool")
ADDRESSES = [Address(f"10.0.0.{number}:8000") for number in range(4)]
SPECS = [EndpointSpec(POOL, address, models=("m",)) for address in ADDRESSES]


def request_of(seed: int, size: int, qos: QosClass = QosClass.INTERACTIVE) -> Request:
    shared = Random(seed % 3).randbytes(2_048)[:size]
    own = Random(seed).randbytes(size - len(shared))
    return Request("m", Api.OPENAI_CHAT, (shared, own), size, qos=qos)


class RouterUnderAnything(RuleBasedStateMachine):
    """Reports in any order, repeated, late and absurd; endpoints that come and go meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.fleet = Fleet()
        self.router = Router(self.fleet, RoutingRules(), Random(1))
        self.now = 0.0
        self.open: dict[ReservationId, EndpointChoice] = {}
        self.known: list[ReservationId] = [ReservationId(0)]

    @rule(members=st.sets(st.integers(0, 3)))
    def set_pool(self, members: set[int]) -> None:
        self.fleet.set_pool(POOL, [SPECS[place] for place in sorted(members)])
        for place in sorted(members):
            self.fleet.set_ready(POOL, ADDRESSES[place], ready=True)

    @rule(seed=st.integers(0, 20), size=st.integers(0, 8_192), qos=st.sampled_from(QosClass))
    def decide(self, seed: int, size: int, qos: QosClass) -> None:
        decision = self.router.decide(request_of(seed, size, qos), self.now)
        assert (decision.outcome is Outcome.OK) == (decision.choice is not None) == (decision.reservation != 0)
        assert isfinite(decision.expected_ttft_ms)
        assert decision.expected_ttft_ms >= 0
        for candidate in self.router.explain(decision).candidates:
            assert all(isfinite(term) and term >= 0 for _, term in candidate.terms)
        if isinstance(decision.choice, EndpointChoice):
            self.open[decision.reservation] = decision.choice
            self.known.append(decision.reservation)

    @rule(place=st.integers(0, 1_000), ttft=st.floats(-1e9, 1e12), status=st.integers(-1, 600))
    def first_token(self, place: int, ttft: float, status: int) -> None:
        self.router.first_token(self.known[place % len(self.known)], ttft, status, self.now)

    @rule(
        place=st.integers(0, 1_000),
        tokens=st.integers(0, 2**32),
        cached=st.none() | st.integers(0, 2**32),
    )
    def final_token(self, place: int, tokens: int, cached: int | None) -> None:
        number = self.known[place % len(self.known)]
        self.router.final_token(number, tokens, tokens, cached, self.now)
        self.open.pop(number, None)

    @rule(place=st.integers(0, 1_000), reason=st.sampled_from(AbortReason))
    def abort(self, place: int, reason: AbortReason) -> None:
        number = self.known[place % len(self.known)]
        self.router.abort(number, reason, self.now)
        self.open.pop(number, None)

    @rule(place=st.integers(0, 1_000), dispatched=st.booleans())
    def expire(self, place: int, dispatched: bool) -> None:
        number = self.known[place % len(self.known)]
        self.router.expire(number, dispatched, self.now)
        self.open.pop(number, None)

    @rule(place=st.integers(0, 3), waiting=st.integers(0, 10**6), usage=st.floats(0, 1), blocks=st.integers(0, 10**6))
    def observe(self, place: int, waiting: int, usage: float, blocks: int) -> None:
        seen = Observation(self.now, waiting, waiting // 2, usage, kv_blocks=blocks, block_tokens=16)
        self.fleet.observe(POOL, ADDRESSES[place], seen)

    @rule(seconds=st.floats(0, 100))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def the_ledger_counts_what_is_open_in_this_life_of_each_endpoint(self) -> None:
        for one in self.router.snapshot(self.now):
            mine = [c for c in self.open.values() if (c.address, c.generation) == (one.address, one.generation)]
            assert one.requests == len(mine)
            assert one.prefill_tokens >= 0
            assert one.decode_tokens >= 0
            assert (one.requests > 0) or (one.prefill_tokens, one.decode_tokens) == (0, 0)
            assert 0.0 <= one.hit_trust <= 1.0


TestRouterUnderAnything = RouterUnderAnything.TestCase
TestRouterUnderAnything.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


def trace(addresses: list[Address], seed: int, steps: int) -> list[str]:
    """The picks of a run: decisions, reports and scrapes, all from the seed."""
    fleet, rng, picks = Fleet(), Random(seed), []
    fleet.set_pool(POOL, [EndpointSpec(POOL, address, models=("m", "n", "o")) for address in addresses])
    for address in addresses:
        fleet.set_ready(POOL, address, ready=True)
    router = Router(fleet, RoutingRules(), Random(seed))
    for step in range(steps):
        decision = router.decide(request_of(rng.randrange(30), rng.randrange(100, 9_000)), step * 0.1)
        assert isinstance(decision.choice, EndpointChoice)
        picks.append(f"{decision.choice.address} {decision.expected_ttft_ms!r}")
        if rng.random() < 0.7:
            router.first_token(decision.reservation, rng.uniform(10, 900), 200, step * 0.1)
            router.final_token(decision.reservation, rng.randrange(10, 3_000), 50, rng.randrange(9), step * 0.1)
    return picks


@given(st.integers(0, 2**32))
@settings(max_examples=10, deadline=None)
def test_the_order_in_which_a_pool_is_listed_does_not_matter(seed: int) -> None:
    runs = {tuple(trace(list(order), seed, 15)) for order in list(permutations(ADDRESSES))[::5]}
    assert len(runs) == 1


@given(st.integers(0, 2**32), st.integers(2_000, 30_000))
@settings(max_examples=30, deadline=None)
def test_adding_a_busier_endpoint_never_changes_the_winner(seed: int, size: int) -> None:
    picks = []
    for count in (3, 4):
        fleet = Fleet()
        fleet.set_pool(POOL, SPECS[:count])
        for place in range(count):
            fleet.set_ready(POOL, ADDRESSES[place], ready=True)
            fleet.observe(POOL, ADDRESSES[place], Observation(0.0, waiting=20 * place, running=5))
        decision = Router(fleet, RoutingRules(), Random(seed)).decide(request_of(seed, size), 0.0)
        assert isinstance(decision.choice, EndpointChoice)
        picks.append(decision.choice.address)
    assert picks[0] == picks[1]


def digest_of_a_run() -> str:
    return hashlib.sha256("\n".join(trace(ADDRESSES, 7, 60)).encode()).hexdigest()


def test_the_same_seed_gives_the_same_picks_whatever_the_hash_seed_of_strings() -> None:
    code = "import sys, runpy; print(runpy.run_path(sys.argv[1])['digest_of_a_run']())"
    seen = {digest_of_a_run()}
    for hash_seed in ("1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-c", code, str(Path(__file__))]
        seen.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip())
    assert len(seen) == 1

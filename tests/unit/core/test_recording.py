"""Recorded decisions made again."""

from random import Random

import msgspec
import pytest

from kinference.core import recording as module
from kinference.core.fleet import BackendSpec, EndpointSpec, Fleet, Observation
from kinference.core.pick import Router
from kinference.core.policies import POLICIES
from kinference.core.policy import RoutingRules, TenantRule
from kinference.core.prices import Price, PricedModel
from kinference.core.recording import Recording, Recordings, replay
from kinference.core.request import Request
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import Api, QosClass

POOL = ObjectRef("default", "pool")
CHAT = Request("m", Api.OPENAI_CHAT, (b"x" * 4_000,), 4_000)


def router_of(policy: str = "expected_latency", size: int = 3, limit: int = 100) -> Router:
    fleet = Fleet()
    specs = [EndpointSpec(POOL, Address(f"h{number}:1"), weight=number + 1, models=("m",)) for number in range(size)]
    fleet.set_pool(POOL, specs)
    for number, spec in enumerate(specs):
        fleet.set_ready(POOL, spec.address, ready=True)
        fleet.observe(POOL, spec.address, Observation(0.0, number, 2 * number, 0.1 * number, 1_000, 16))
    fleet.set_backends([BackendSpec(ObjectRef("default", "b"), Api.OPENAI_CHAT, {"m": "n"})])
    router = Router(fleet, RoutingRules(policy=policy), Random(7))
    router.recordings.resize(limit)
    return router


def again(recording: Recording) -> Recording:
    """As it is after a trip through the admin port."""
    return msgspec.json.decode(msgspec.json.encode(recording), type=Recording)


@pytest.mark.parametrize("qos", list(QosClass))
@pytest.mark.parametrize("policy", POLICIES)
def test_a_recorded_decision_comes_out_the_same_to_the_last_bit(policy: str, qos: QosClass) -> None:
    router, rng = router_of(policy), Random(3)
    for number in range(20):
        request = msgspec.structs.replace(CHAT, prompt=(rng.randbytes(rng.choice([100, 900, 5_000])),), qos=qos)
        decision = router.decide(request, number / 7)
        (recording,) = router.recordings.newest(1)
        assert decision._weighed is not None
        weighed = replay(again(recording))
        assert again(recording) == recording
        assert weighed.names[weighed.chosen] == recording.pick == decision.explain().pick
        assert list(weighed.totals) == list(decision._weighed.totals)
        assert [(name, list(column)) for name, column in weighed.columns] == [
            (name, list(column)) for name, column in decision._weighed.columns
        ]
        if rng.random() < 0.7:
            router.first_token(decision.reservation, rng.uniform(1.0, 900.0), rng.choice([200, 200, 503]), number / 7)
            router.final_token(decision.reservation, 1_000, 30, rng.choice([None, 0, 500]), number / 7)


def test_that_an_engine_seems_to_hang_is_part_of_it() -> None:
    router = router_of(size=1)
    router.first_token(router.decide(CHAT, 0.0).reservation, 100.0, 200, 0.5)
    router.decide(CHAT, 1.0)
    decision = router.decide(CHAT, 7.0)
    (recording,) = router.recordings.newest(1)
    weighed = replay(again(recording))
    assert decision._weighed is not None
    assert list(weighed.totals) == list(decision._weighed.totals)
    assert max(dict(weighed.columns)["queue_wait"]) > 1_000.0


def test_what_money_is_worth_in_time_is_part_of_it() -> None:
    router = router_of()
    fleet = Fleet()
    fleet.set_backends(
        [
            BackendSpec(
                ObjectRef("default", "b"), Api.OPENAI_CHAT, {"m": "n"}, prices=(PricedModel("n", Price(9.0, 9.0)),)
            )
        ]
    )
    router = Router(fleet, RoutingRules(tenants=(TenantRule(("t",), usd_per_hour=5.0),)), Random(1))
    router.recordings.resize(5)
    decision = router.decide(msgspec.structs.replace(CHAT, tenant="t"), 0.0)
    (recording,) = router.recordings.newest(1)
    assert dict(recording.extra)["price"][0] > 0
    assert decision._weighed is not None
    assert list(replay(again(recording)).totals) == list(decision._weighed.totals)


def test_nothing_of_the_prompt_or_the_tenant_is_in_it() -> None:
    router = router_of()
    router.decide(msgspec.structs.replace(CHAT, tenant="acme", session="s3cret"), 0.0)
    text = msgspec.json.encode(router.recordings.newest(1))
    assert not any(word in text for word in (b"xxxx", b"acme", b"s3cret"))


def test_nothing_is_kept_unless_asked_for_and_no_more_than_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    router = router_of(limit=0)
    router.decide(CHAT, 0.0)
    assert not router.recordings.is_on
    assert router.recordings.newest(10) == ()
    router.recordings.resize(2)
    for now in range(3):
        router.decide(CHAT, float(now))
    assert [one.at for one in router.recordings.newest(10)] == [2.0, 1.0]
    assert [one.at for one in router.recordings.newest(1)] == [2.0]
    monkeypatch.setattr(module, "CANDIDATES_MAX", 4)
    router.decide(CHAT, 3.0)
    assert [one.at for one in router.recordings.newest(10)] == [3.0]
    router.recordings.resize(0)
    assert router.recordings.newest(10) == ()


def test_a_decision_that_is_not_recorded_draws_as_ever() -> None:
    plain, recorded = router_of("random", limit=0), router_of("random", limit=1)
    assert {plain.decide(CHAT, 0.0).explain().pick for _ in range(60)} == {
        recorded.decide(CHAT, 0.0).explain().pick for _ in range(60)
    }


def test_no_recordings_are_none() -> None:
    assert Recordings().newest(3) == ()

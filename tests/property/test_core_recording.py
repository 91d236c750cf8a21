"""Any decision that was recorded comes out the same when it is made again, whatever the router had learned by then."""

from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from kinference.core.fleet import BackendSpec, EndpointSpec, Fleet, Observation
from kinference.core.pick import Router
from kinference.core.policies import POLICIES
from kinference.core.policy import RoutingRules
from kinference.core.recording import Recording, replay
from kinference.core.request import Request
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import Api, QosClass

POOL = ObjectRef("default", "pool")
OBSERVATIONS = st.builds(
    Observation,
    seen_at=st.floats(0.0, 10.0),
    waiting=st.integers(0, 100),
    running=st.integers(0, 100),
    kv_usage_ratio=st.none() | st.floats(0.0, 1.0),
    kv_blocks=st.none() | st.integers(1, 5_000),
    block_tokens=st.none() | st.just(16),
)


@settings(max_examples=60, deadline=None)
@given(
    policy=st.sampled_from(sorted(POLICIES)),
    observations=st.lists(OBSERVATIONS, min_size=1, max_size=5),
    seed=st.integers(0, 2**32),
    steps=st.integers(1, 12),
)
def test_what_was_recorded_comes_out_the_same(
    policy: str, observations: list[Observation], seed: int, steps: int
) -> None:
    fleet, rng = Fleet(), Random(seed)
    specs = [
        EndpointSpec(POOL, Address(f"h{number}:1"), weight=rng.randint(0, 3), models=("m",))
        for number in range(len(observations))
    ]
    fleet.set_pool(POOL, specs)
    fleet.set_backends([BackendSpec(ObjectRef("default", "b"), Api.OPENAI_CHAT, {"m": "n"})])
    for spec in specs:
        fleet.set_ready(POOL, spec.address, ready=True)
    router = Router(fleet, RoutingRules(policy=policy), Random(seed))
    router.recordings.resize(steps)
    for now in range(steps):
        at = rng.randrange(len(specs))
        fleet.observe(POOL, specs[at].address, observations[at])
        size = rng.choice([40, 700, 3_000])
        prompt = bytes([rng.randrange(2)]) * size
        request = Request(
            "m",
            Api.OPENAI_CHAT,
            (prompt,),
            size,
            qos=rng.choice(list(QosClass)),
            session=rng.choice(["", "one", "other"]),
        )
        decision = router.decide(request, float(now))
        (recording,) = router.recordings.newest(1)
        weighed = replay(msgspec.json.decode(msgspec.json.encode(recording), type=Recording))
        assert decision._weighed is not None
        assert weighed.names[weighed.chosen] == recording.pick == decision.explain().pick
        assert list(weighed.totals) == list(decision._weighed.totals)
        router.first_token(decision.reservation, rng.uniform(0.0, 5_000.0), rng.choice([200, 503]), float(now))
        if rng.random() < 0.6:
            router.final_token(decision.reservation, size // 4, 50, rng.choice([None, 0, 100]), float(now))

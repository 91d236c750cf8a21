"""Sessions that grow."""

import itertools
from collections import defaultdict
from random import Random

from kinference.sim.cluster.job import Arrival
from kinference.sim.workloads.sessions import AGENTS, agents, chats, tenants


def by_session(arrivals: list[Arrival]) -> dict[str, list[Arrival]]:
    sessions = defaultdict(list)
    for arrival in arrivals:
        sessions[arrival.session].append(arrival)
    return sessions


def test_each_turn_goes_on_from_the_last_one_and_its_answer() -> None:
    for turns in by_session(chats(Random(1), 400, 2.0)).values():
        for earlier, later in itertools.pairwise(turns):
            assert later.blocks[: len(earlier.blocks)] == earlier.blocks
            assert later.prompt_tokens > earlier.prompt_tokens + earlier.output_tokens
            assert later.at > earlier.at


def test_sessions_of_one_application_share_its_head() -> None:
    sessions = by_session(agents(Random(1), 600, 4.0))
    heads = {turns[0].blocks[:5] for turns in sessions.values()}
    assert len(heads) < len(sessions)
    assert max(arrival.prompt_tokens for turns in sessions.values() for arrival in turns) <= AGENTS.context_max


def test_tenants_come_mixed_and_in_order() -> None:
    arrivals = tenants(Random(1), 600, 4.0)
    assert {arrival.tenant for arrival in arrivals} == {"chats", "agents", "pasted"}
    assert [arrival.at for arrival in arrivals] == sorted(arrival.at for arrival in arrivals)

from random import Random

from kinference.demo.conversations import Workload, conversations

SMALL = Workload(agents=2, sessions_per_agent=3, turns=4)


def test_the_same_seed_gives_the_same_conversations() -> None:
    assert conversations(SMALL, Random(7)) == conversations(SMALL, Random(7))
    assert conversations(SMALL, Random(7)) != conversations(SMALL, Random(8))


def test_every_session_has_a_question_and_a_pause_for_each_turn() -> None:
    sessions = conversations(SMALL, Random(1))
    assert len(sessions) == SMALL.sessions == 6
    assert all(len(s.questions) == len(s.pauses) == SMALL.turns for s in sessions)
    assert SMALL.requests == sum(len(s.questions) for s in sessions)


def test_sessions_of_one_agent_share_its_system_prompt_and_nothing_else() -> None:
    sessions = conversations(SMALL, Random(1))
    assert len({s.system for s in sessions}) == SMALL.agents
    assert len({q for s in sessions for q in s.questions}) == SMALL.requests
    assert len({s.name for s in sessions}) == SMALL.sessions

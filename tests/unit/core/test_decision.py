"""Decisions explain themselves."""

from kinference.core.decision import Decision, Rejected, Weighed
from kinference.vocabulary import Outcome


def test_the_table_is_made_from_what_was_weighed() -> None:
    weighed = Weighed(
        "p", ["a", "b", "c"], [("x", [1.0, 2.0, 5.0]), ("y", [3.0, 1.0, 0.0])], [4.0, 3.0, 5.0], [7, 8, 9], 1
    )
    table = Decision(Outcome.OK, "", _weighed=weighed, _rejected=(Rejected("d", "draining"),)).explain()
    assert (table.policy, table.pick, table.runner_up) == ("p", "b", "a")
    assert table.candidates[0].terms == (("x", 1.0), ("y", 3.0))
    assert [one.hit_tokens for one in table.candidates] == [7, 8, 9]
    assert table.rejected == (Rejected("d", "draining"),)


def test_a_lone_candidate_has_no_runner_up() -> None:
    assert Decision(Outcome.OK, "", _weighed=Weighed("p", ["a"], [], [0.0], [0], 0)).explain().runner_up == ""


def test_a_refusal_explains_who_was_removed() -> None:
    table = Decision(Outcome.NO_WORKERS, "why", _rejected=(Rejected("d", "draining"),)).explain()
    assert (table.candidates, table.pick) == ((), "")
    assert table.rejected == (Rejected("d", "draining"),)

import logging
from random import Random

import pytest

from kinference.core.fleet import Fleet
from kinference.fleet.discovery.following import PAUSE_MAX, Following, Surroundings, pause
from kinference.fleet.discovery.place import PLACES_MAX, Place
from kinference.ids import Address
from tests.unit.fleet.discovery.fakes import AWAY, ScriptedSource, Stopped, Waits
from tests.unit.fleet.fakes import HERE, ManualClock, spec

THERE = Address("10.0.0.2:8000")


class Followed:
    """A pool whose source follows a script to its end."""

    def __init__(self, source: ScriptedSource) -> None:
        self.fleet, self.clock, self.waits, self.changes = Fleet(), ManualClock(), Waits(), 0
        around = Surroundings(self.fleet, self.clock, Random(1), self.waits, self._changed)
        self.following = Following(around, spec(""), source)

    def _changed(self) -> None:
        self.changes += 1

    @property
    def addresses(self) -> list[str]:
        return [one.spec.address for one in self.fleet.endpoints()]


async def followed(*script: list[Place] | Exception) -> Followed:
    made = Followed(ScriptedSource(list(script)))
    with pytest.raises(Stopped):
        await made.following.run()
    return made


async def test_a_source_that_fails_keeps_what_it_told_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    made = await followed([Place(HERE)], AWAY, AWAY)
    status = made.following.status()
    assert made.addresses == [HERE]
    assert (status.endpoints, status.failures, status.error) == (1, 2, "it is away")
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert told == ["pool default/pool by a script: it is away (endpoints as before: 1)"]


async def test_what_is_over_is_said_and_not_held_against_the_source(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    made = await followed(AWAY, [Place(HERE)], [Place(HERE), Place(THERE)])
    assert made.following.error == ""
    assert made.changes == 2
    assert "it tells again (endpoints: 1)" in caplog.text
    assert f"2 endpoints, new: {THERE}" in caplog.text


async def test_each_failure_in_a_row_is_waited_for_longer() -> None:
    made = await followed(*[AWAY] * 12)
    first, last = made.waits.asked[0], made.waits.asked[-1]
    assert 0.5 <= first <= 1.0
    assert PAUSE_MAX / 2 <= last <= PAUSE_MAX


async def test_waiting_begins_anew_after_a_success() -> None:
    made = await followed(AWAY, AWAY, AWAY, AWAY, [Place(HERE)], AWAY)
    assert made.waits.asked[-1] <= 1.0


async def test_a_fault_of_ours_ends_no_follower(caplog: pytest.LogCaptureFixture) -> None:
    made = await followed(ZeroDivisionError(), [Place(HERE)])
    assert made.addresses == [HERE]
    assert "ZeroDivisionError" in caplog.text


async def test_more_than_a_pool_may_have_is_said() -> None:
    made = await followed([Place(Address(f"10.0.{n // 250}.{n % 250}:80")) for n in range(PLACES_MAX + 3)])
    assert len(made.addresses) == PLACES_MAX
    assert (made.following.status().left_out, "3 endpoints too many" in made.following.error) == (3, True)


async def test_its_age_is_that_of_the_last_word() -> None:
    made = Followed(ScriptedSource([[Place(HERE)]]))
    assert made.following.status().told_s_ago is None
    assert not made.following.is_settled
    with pytest.raises(Stopped):
        await made.following.run()
    made.clock.time += 7
    assert made.following.status().told_s_ago == 7
    assert made.following.is_settled


def test_pauses_never_exceed_their_bound() -> None:
    assert all(0 < pause(failures, Random(2)) <= PAUSE_MAX for failures in range(1, 5000, 97))

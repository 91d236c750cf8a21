"""Small fleets and what they play."""

from random import Random

import pytest

from kinference.sim.cluster.job import Arrival
from kinference.sim.cluster.run import ClusterRun, FleetOptions, Played
from kinference.sim.cluster.scenarios import ENGINE
from kinference.sim.workloads.sessions import chats


@pytest.fixture
def arrivals() -> list[Arrival]:
    """A minute of chats for two engines."""
    return chats(Random(1), 200, 3.0)


@pytest.fixture
def played(arrivals: list[Arrival]) -> Played:
    """The same, played under our own policy."""
    return ClusterRun(FleetOptions((ENGINE,) * 2, "expected_latency")).play(arrivals)

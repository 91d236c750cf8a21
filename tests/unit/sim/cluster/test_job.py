"""A job's life."""

from kinference.sim.cluster.job import Arrival, Job


def test_a_restart_forgets_what_an_engine_had_done() -> None:
    job = Job(Arrival(1.0, 100, 5, ()))
    job.computed, job.generated, job.total, job.named = 100, 2, 102, 3
    job.restart()
    assert (job.computed, job.generated, job.total, job.named) == (0, 0, 100, 0)

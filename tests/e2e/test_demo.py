"""`kinference demo --once`: the first thing a newcomer runs."""

import re
import signal
from collections.abc import Iterator

import pytest

from tests.e2e.processes import process, run


def test_the_demo_beats_round_robin_on_the_same_traffic() -> None:
    """By what it computes, that is: how long that takes here is the machine's doing, and told by simulated clocks."""
    code, output = run("demo", "--once")
    assert code == 0, output
    rows = {
        match[1]: (float(match[2]), int(match[3].replace(",", "")))
        for match in re.finditer(r"│ (\w+) +│ +\d+ │ +([\d.]+)% │.*│ +([\d,]+) ms │", output)
    }
    (our_hits, our_p99), (their_hits, their_p99) = rows["expected_latency"], rows["round_robin"]
    assert our_hits > their_hits
    assert min(our_p99, their_p99) > 0


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell's background jobs ignore interrupts, and so does whatever they start; we may be one."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_amid_the_traffic_ends_it_without_a_trace() -> None:
    with process("demo") as running:
        running.wait_for(r"20/\d+ requests")
        running.popen.send_signal(signal.SIGINT)
        code, output = running.finish()
    assert code == 130
    assert "Traceback" not in output

"""`kinference demo --once`: the first thing a newcomer runs."""

import re

from tests.e2e.processes import run


def test_the_demo_beats_round_robin_on_the_same_traffic() -> None:
    code, output = run("demo", "--once")
    assert code == 0, output
    rows = {
        match[1]: (float(match[2]), int(match[3].replace(",", "")))
        for match in re.finditer(r"│ (\w+) +│ +\d+ │ +([\d.]+)% │.*│ +([\d,]+) ms │", output)
    }
    (our_hits, our_p99), (their_hits, their_p99) = rows["expected_latency"], rows["round_robin"]
    assert our_hits > their_hits
    assert our_p99 < their_p99

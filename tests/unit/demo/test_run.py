from io import StringIO

from rich.console import Console

from kinference.demo.conversations import Workload
from kinference.demo.run import Demo, DemoOptions

SMALL = Workload(
    agents=2, sessions_per_agent=5, turns=2, system_words=200, question_words=40, answer_tokens=4, think_s=0.5
)


async def test_one_run_shows_both_policies_and_every_endpoint() -> None:
    screen = StringIO()
    console = Console(file=screen, width=80)
    assert await Demo(DemoOptions(once=True, engines=2, speed=10, workload=SMALL), console).run() == 0
    shown = screen.getvalue()
    assert "10 conversations of 2 turns" in " ".join(shown.split())
    assert shown.count("│ 127.0.0.1:") == 4
    assert shown.count("\n20/20 requests") == 2
    logged = [line for line in shown.splitlines() if line.startswith("[")]
    assert [line.partition(", ")[0] for line in logged] == [
        "[expected_latency] 20/20 requests",
        "[round_robin] 20/20 requests",
    ]
    assert all(line.endswith(" ms") for line in logged)
    rows = [line.split("│")[1].strip() for line in shown.partition("two policies")[2].splitlines() if "│" in line]
    assert rows == ["expected_latency", "round_robin"]


async def test_a_failing_client_is_told_and_fails_the_demo() -> None:
    screen = StringIO()
    impossible = Workload(agents=1, sessions_per_agent=1, turns=2, think_s=0)
    assert (
        await Demo(DemoOptions(once=True, engines=1, workload=impossible), Console(file=screen, width=100)).run() == 1
    )
    assert "failed: the client process failed" in screen.getvalue()

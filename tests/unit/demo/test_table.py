from rich.console import Console, RenderableType

from kinference.demo.report import Answer, Scoreboard
from kinference.demo.table import comparison, live, progress_line


def rendered(renderable: RenderableType) -> str:
    console = Console(width=120, record=True, quiet=False, file=None, force_terminal=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def board(policy: str, ttft_ms: float) -> Scoreboard:
    result = Scoreboard(policy, 4)
    result.add(Answer("127.0.0.1:8001", ttft_ms, prompt_tokens=200, cached_tokens=50))
    return result


def test_the_live_table_has_a_row_for_each_endpoint_and_their_sum() -> None:
    text = rendered(live(board("expected_latency", 1234), {"127.0.0.1:8001": 2, "127.0.0.1:8002": 1}))
    rows = {line.split()[1]: line for line in text.splitlines() if line.startswith("│")}
    assert "25.0%" in rows["127.0.0.1:8001"]
    assert "1,234 ms" in rows["127.0.0.1:8001"]
    assert rows["127.0.0.1:8002"].count(" - ") == 3, "nothing was measured there yet"
    assert [cell.strip() for cell in rows["all"].split("│")][2:4] == ["1", "3"]
    assert "1/4 requests" in text


def test_the_comparison_shows_both_policies() -> None:
    text = rendered(comparison(board("expected_latency", 100), board("round_robin", 900)))
    ours, theirs = (line for line in text.splitlines() if line.startswith("│"))
    assert "expected_latency" in ours
    assert "100 ms" in ours
    assert "round_robin" in theirs
    assert "900 ms" in theirs


def test_a_progress_line_says_how_far_and_how_well() -> None:
    line = progress_line(board("round_robin", 900))
    assert line == "[round_robin] 1/4 requests, prefix hit rate 25.0%, TTFT p50 900 ms, p99 900 ms"

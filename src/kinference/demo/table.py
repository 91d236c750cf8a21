"""The live table of the demonstration, and the comparison at its end."""

from collections.abc import Mapping

from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kinference.demo.report import Scoreboard, Tally

BAR_WIDTH = 40


def live(board: Scoreboard, in_flight: Mapping[str, int]) -> Group:
    """What is going on now: a row per endpoint, the sum, and how far along the traffic is."""
    table = Table(title=f"kinference demo: policy {board.policy}", title_justify="left")
    table.add_column("endpoint", no_wrap=True)
    for heading in ("requests", "in flight", "hit rate", "TTFT p50", "TTFT p99"):
        table.add_column(heading, justify="right")
    for endpoint in sorted(in_flight.keys() | board.endpoints.keys()):
        table.add_row(*_row(endpoint, board.endpoints.get(endpoint, Tally()), in_flight.get(endpoint, 0)))
    table.add_section()
    table.add_row(*_row("all", board.total, sum(in_flight.values())))
    done = Text(f"{board.done}/{board.requests} requests\n", style="dim")
    return Group(table, ProgressBar(total=board.requests, completed=board.done, width=BAR_WIDTH), Text(""), done)


def comparison(ours: Scoreboard, theirs: Scoreboard) -> Table:
    """Both runs side by side: the same conversations, engines that start equally cold."""
    table = Table(title="the same traffic, two policies", title_justify="left")
    table.add_column("policy", no_wrap=True)
    for heading in ("requests", "hit rate", "TTFT mean", "TTFT p50", "TTFT p99"):
        table.add_column(heading, justify="right")
    for board in (ours, theirs):
        total = board.total
        table.add_row(
            board.policy,
            str(total.requests),
            f"{total.hit_rate:.1%}",
            _ms(total.ttft_ms_mean),
            _ms(total.ttft_ms(0.5)),
            _ms(total.ttft_ms(0.99)),
        )
    return table


def progress_line(board: Scoreboard) -> str:
    """One line for a log, where no live table can be drawn."""
    total = board.total
    return (
        f"[{board.policy}] {board.done}/{board.requests} requests, prefix hit rate {total.hit_rate:.1%}, "
        f"TTFT p50 {_ms(total.ttft_ms(0.5))}, p99 {_ms(total.ttft_ms(0.99))}"
    )


def _row(name: str, tally: Tally, in_flight: int) -> tuple[str, ...]:
    if not tally.requests:
        return (name, "0", str(in_flight), "-", "-", "-")
    return (
        name,
        str(tally.requests),
        str(in_flight),
        f"{tally.hit_rate:.1%}",
        _ms(tally.ttft_ms(0.5)),
        _ms(tally.ttft_ms(0.99)),
    )


def _ms(value: float) -> str:
    return f"{value:,.0f} ms"

"""The report of a grid as one HTML page that needs no other file, and as JSON."""

from collections.abc import Mapping, Sequence
from html import escape

import msgspec

from kinference.sim.cluster.plot import bars, curves, legend
from kinference.sim.cluster.table import COLUMNS, Column, Line, Place

STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1000px; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100% }
th, td { padding: .2rem .5rem; text-align: right; border-bottom: 1px solid #e5e5e5 }
th:first-child, td:first-child { text-align: left }
td.best { font-weight: 700; color: #0b6e4f }
.legend span { margin-right: 1rem; white-space: nowrap }
.legend i { display: inline-block; width: .8em; height: .8em; margin-right: .35em }
.plots { display: flex; flex-wrap: wrap; gap: 1rem }
"""
NOTE = (
    "Slow-down: time to first token over that of the same prompt on an idle engine without a cache. Goodput: requests "
    "with a first token within 2 s and 1 s for each 8,000 tokens of prompt, and then 60 ms a token. Load: the work "
    "that one cache as large as all engines' together would leave, over what the engines can do; 100% is out of reach. "
    "The first tenth of each run is not counted. Averages over the seeds; the range in a cell's tooltip."
)


def html_report(table: Mapping[Place, Sequence[Line]]) -> str:
    """The page: for each place a table with the best figures marked, and four plots."""
    sections = "".join(_section(place, lines) for place, lines in table.items())
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>kinference simulate</title><style>{STYLE}</style>'
        f"<h1>Routing policies on a simulated fleet</h1><p>{escape(NOTE)}</p>{sections}</html>"
    )


def json_report(table: Mapping[Place, Sequence[Line]]) -> bytes:
    """Everything, each seed by itself."""
    rows = [
        {"place": place, "policy": line.policy, "seeds": line.summaries}
        for place, lines in table.items()
        for line in lines
    ]
    return msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n"


def best(column: Column, lines: Sequence[Line]) -> float:
    """The best average of a column."""
    return (max if column.more_is_better else min)(line.mean(column.value) for line in lines)


def _section(place: Place, lines: Sequence[Line]) -> str:
    heads = "".join(f"<th>{escape(column.head)}</th>" for column in COLUMNS)
    rows = "".join(_row(line, lines) for line in lines)
    first = [(line.policy, line.summaries[0]) for line in lines]
    plots = (
        curves("time to first token, s, by share of requests", {name: one.ttft_s_curve for name, one in first})
        + bars("cache hits, share of prompt tokens", {name: {"": one.hit_rate} for name, one in first})
        + bars("busiest engine over the mean", {name: {"": one.imbalance} for name, one in first})
        + bars("mean slow-down of each tenant", {name: one.tenants for name, one in first})
    )
    return (
        f"<h2>{escape(str(place))}</h2><table><tr><th>policy</th>{heads}</tr>{rows}</table>"
        f'{legend([name for name, _ in first])}<div class="plots">{plots}</div>'
    )


def _row(line: Line, lines: Sequence[Line]) -> str:
    cells = []
    for column in COLUMNS:
        least, most = line.spread(column.value)
        value = format(line.mean(column.value), column.form)
        mark = ' class="best"' if value == format(best(column, lines), column.form) else ""
        cells.append(f'<td{mark} title="{least:{column.form}} to {most:{column.form}}">{value}</td>')
    return f"<tr><td>{escape(line.policy)}</td>{''.join(cells)}</tr>"

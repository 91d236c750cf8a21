"""Writes the page of the comparison and its plots from the figures of a run: `page.py [results.json]`."""

import json
import sys
from collections.abc import Iterator, Sequence
from html import escape
from math import log10
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs/explanation/comparison.md"
ROW, LABEL, BAR, VALUE, HEAD = 16, 190, 300, 130, 30
OURS, LIBRARY, THEIRS = "#2b6cb0", "#90b4d8", "#a0a0a0"

HEADER = """# Compared with others

One run of `bench/comparison/run.py`, {when}: {rounds} interleaved rounds of {seconds} s on {load:.1f} of load average before it
began, two cores, Python {python}. The router has one core for itself; an engine that answers constants and the load, both in
C, share the other. **Requests a CPU-second** count the CPU time of the router's whole process tree, so the load cannot be
the bottleneck of the figure. Only ratios between rows of one table carry over to other machines: the same machine under
other work gives other absolute figures. Each request has a prompt and an id of its own: three quarters of the prompt are
the same in all.

Ours parses, hashes prefixes, decides, reports and counts; nginx and Envoy only pass bytes on, and are there as the measure
of what a proxy costs. Compiled is ours from the same sources ([how](../how-to/compile.md)). The routers in Rust choose by a
policy; LiteLLM and Portkey translate. The slow ones are asked with eight connections at most. This page is written by the
script from `bench/comparison/results.json`:

    make native && bench/comparison/install.sh .bench && .venv/bin/python bench/comparison/run.py --rivals .bench
"""


def write(results: Path) -> None:
    """The page and its plots."""
    figures = json.loads(results.read_text())
    PAGE.write_text("\n".join(lines(figures)) + "\n")
    panels = [(load, [bar(row, "router") for row in rows]) for load, rows in grouped(figures["routers"], "load")]
    PAGE.with_name("comparison.svg").write_text(
        plot(panels, "requests a CPU-second, logarithmic; the line is lowest to highest round")
    )
    flows = [
        (
            f"{size}, headers {headers}",
            [bar(row, "name") for row in named(figures["pickers"]) if (row["size"], row["headers"]) == (size, headers)],
        )
        for size, headers in dict.fromkeys((row["size"], row["headers"]) for row in figures["pickers"])
    ]
    PAGE.with_name("comparison-picker.svg").write_text(plot(flows, "Picker flows a CPU-second, logarithmic"))


def grouped(rows: Sequence[dict[str, Any]], key: str) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(value, [row for row in rows if row[key] == value]) for value in dict.fromkeys(row[key] for row in rows)]


def named(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The servers of the picker, called by what they do as well."""
    does = {"carry": "carries only", "full": "decides"}
    return [row | {"name": f"{row['server']}, {does[row['work']]}"} for row in rows]


# --- the text ------------------------------------------------------------------------------------


def lines(figures: dict[str, Any]) -> Iterator[str]:
    yield HEADER.format(
        when=figures["taken"],
        rounds=figures["rounds"],
        seconds=figures["seconds"],
        load=figures["load_average"],
        python=figures["python"],
    )
    yield "## The gateway\n\n![Requests a CPU-second of each router by kind of request](comparison.svg)\n"
    yield "`x` is ours by that row's: above 1 we do more. p50 and p99 are under that load, which keeps the router busy.\n"
    yield "| request | router | requests a CPU-second | lowest to highest | x | requests a second | p50 ms | p99 ms |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|"
    for load, rows in grouped(figures["routers"], "load"):
        best = median(rows[0]["per_cpu_s"])
        for row in rows:
            yield router_line(load, row, best)
    yield "\n## Latency at a steady rate\n"
    yield "Requests are due at equal distances, and their time counts from then, whether the router is ready or not.\n"
    yield "| request | router | a second | p50 ms | p99 ms | p99.9 ms | first byte p50 ms |"
    yield "|---|---|--:|--:|--:|--:|--:|"
    for load, rows in grouped(figures["paced"], "load"):
        for row in rows:
            times = " | ".join(f"{row[key]:.2f}" for key in ("p50", "p99", "p999", "first_p50"))
            yield f"| {load} | {row['router']} | {row['rate']} | {failed(row['errors'], row['done']) or times + ' |'}"
    yield from memory_lines(figures)
    yield from picker_lines(figures)


def router_line(load: str, row: dict[str, Any], best: float) -> str:
    if gone := failed(sum(row["errors"]), sum(row["done"])):
        return f"| {load} | {row['router']} | {gone}"
    rates, middle = row["per_cpu_s"], median(row["per_cpu_s"])
    numbers = (
        f"{middle:,.0f} | {min(rates):,.0f} to {max(rates):,.0f} | {best / middle:.2f} | {median(row['per_s']):,.0f}"
    )
    return f"| {load} | {row['router']} | {numbers} | {median(row['p50']):.2f} | {median(row['p99']):.2f} |"


def failed(errors: int, done: int) -> str:
    """What to say where more than one in a hundred had no good answer."""
    return f"{errors} of {done} failed |" if errors > done / 100 else ""


def memory_lines(figures: dict[str, Any]) -> Iterator[str]:
    yield "\n## Memory and the event loop\n\nResident memory of the process tree after its first requests, and after all of the above.\n"
    yield "| router | MB at first | MB at last |\n|---|--:|--:|"
    for name, row in figures["memory"].items():
        yield f"| {name} | {row['idle_mb']:.0f} | {row['after_mb']:.0f} |"
    total = figures["lag"][-1][1] if figures["lag"] else 0
    if total:
        told = ", ".join(f"{count / total:.2%} within {bound * 1e3:g} ms" for bound, count in figures["lag"][:-1])
        yield f"\nHow late our event loop ran what was due, over all of it ({total:,} times looked): {told}."
    yield "\nMemory per stream and over a long run is told in [bench/README.md](../../bench/README.md)."


def picker_lines(figures: dict[str, Any]) -> Iterator[str]:
    yield "\n## The picker\n\n![Picker flows a CPU-second of each gRPC server](comparison-picker.svg)\n"
    yield "A flow is five calls: push, pick, pull, two reports; 32 at once on one connection. *Carries only*: bodies are kept and"
    yield "nothing is decided, which leaves the server; *decides*: the product's own picker on that server.\n"
    yield "| body | headers | server | flows a CPU-second | lowest to highest | x |\n|---|---|---|--:|--:|--:|"
    for row in named(figures["pickers"]):
        rates, middle = row["per_cpu_s"], median(row["per_cpu_s"])
        same = [one for one in figures["pickers"] if all(one[key] == row[key] for key in ("size", "headers", "work"))]
        ratio = median(same[0]["per_cpu_s"]) / middle
        spread = f"{min(rates):,.0f} to {max(rates):,.0f}"
        yield f"| {row['size']} | {row['headers']} | {row['name']} | {middle:,.0f} | {spread} | {ratio:.1f} |"


# --- the plots -----------------------------------------------------------------------------------

Bar = tuple[str, float, float, float]
"""A name, the median, the lowest and the highest."""


def bar(row: dict[str, Any], name: str) -> Bar:
    good = not failed(sum(row["errors"]), sum(row["done"])) if "errors" in row else True
    rates = row["per_cpu_s"]
    return (row[name], median(rates), min(rates), max(rates)) if good else (row[name], 0, 0, 0)


def plot(panels: Sequence[tuple[str, list[Bar]]], caption: str) -> str:
    """Bars, a panel for each kind of request, all on one scale."""
    values = [value for _, bars in panels for _, *three in bars for value in three if value]
    least, most = log10(min(values)) - 0.2, log10(max(values))
    parts, y = [], HEAD
    for title, bars in panels:
        parts.append(f'<text x="4" y="{y + 12}" font-weight="bold">{escape(title)}</text>')
        y += ROW
        for name, *three in bars:
            parts.append(f'<text x="{LABEL - 6}" y="{y + 12}" text-anchor="end">{escape(name)}</text>')
            parts += drawn(name, three, y, least, most)
            y += ROW
        y += ROW // 2
    width = LABEL + BAR + VALUE
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" font-family="sans-serif" font-size="11">'
    return (
        "\n".join(
            [
                head,
                f'<rect width="{width}" height="{y}" fill="white"/>',
                f'<text x="4" y="16">{escape(caption)}</text>',
                *parts,
                "</svg>",
            ]
        )
        + "\n"
    )


def drawn(name: str, three: Sequence[float], y: int, least: float, most: float) -> Iterator[str]:
    middle, low, high = three
    if not middle:
        yield f'<text x="{LABEL}" y="{y + 12}">failed</text>'
        return
    at = [BAR * (log10(value) - least) / (most - least) for value in (middle, low, high)]
    colour = THEIRS if not name.startswith("kinference") else LIBRARY if "library" in name else OURS
    yield f'<rect x="{LABEL}" y="{y + 2}" width="{at[0]:.1f}" height="{ROW - 4}" fill="{colour}"/>'
    yield f'<line x1="{LABEL + at[1]:.1f}" x2="{LABEL + at[2]:.1f}" y1="{y + 8}" y2="{y + 8}" stroke="black"/>'
    yield f'<text x="{LABEL + max(at) + 5:.1f}" y="{y + 12}">{middle:,.0f}</text>'


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "results.json")

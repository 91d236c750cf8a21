"""Plots as SVG, without a library: curves and bars, coloured by policy."""

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, log10

WIDTH, HEIGHT = 460, 240
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 26, 30
COLOURS = ("#0b6e4f", "#c8553d", "#3a6ea5", "#8a5a9e", "#d4a017", "#5c6b73", "#b0413e", "#2a9d8f", "#7d4f50", "#444")
DECADES_MAX = 6
LINE = 13
NAMES_MAX = (HEIGHT - TOP - BOTTOM) // LINE
"""Lines of text that a plot has room for; the legend has them all."""
GOLDEN_ANGLE = 137.508


def curves(title: str, lines: Mapping[str, Sequence[float]]) -> str:
    """Percentiles on a logarithmic scale: each line from its least value at 0% to its greatest at 100%."""
    top = max((max(values) for values in lines.values()), default=1.0)
    highest = ceil(log10(max(top, 1e-3)))
    least = min((value for values in lines.values() for value in values if value > 0), default=0.1)
    lowest = max(highest - DECADES_MAX, ceil(log10(least)) - 1)

    def height(value: float) -> float:
        share = (log10(max(value, 10.0**lowest)) - lowest) / (highest - lowest)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    parts = [_level(height(10.0**power), f"{10.0**power:g}") for power in range(lowest, highest + 1)]
    for number, (name, values) in enumerate(lines.items()):
        colour = _colour(number)
        step = (WIDTH - LEFT - RIGHT) / max(1, len(values) - 1)
        points = " ".join(f"{LEFT + place * step:.1f},{height(value):.1f}" for place, value in enumerate(values))
        parts.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="1.8" points="{points}">'
            f"<title>{escape(name)}</title></polyline>"
        )
        if len(lines) <= NAMES_MAX:
            y = HEIGHT - BOTTOM - 6 - LINE * (len(lines) - 1 - number)
            parts.append(
                f'<text x="{WIDTH - RIGHT - 4}" y="{y}" text-anchor="end" fill="{colour}">{escape(name)}</text>'
            )
    for share in (0, 25, 50, 75, 100):
        x = LEFT + share / 100 * (WIDTH - LEFT - RIGHT)
        parts.append(f'<text x="{x:.0f}" y="{HEIGHT - 12}" text-anchor="middle">{share}%</text>')
    return _svg(title, parts)


def bars(title: str, values: Mapping[str, Mapping[str, float]]) -> str:
    """Bars from 0 up: those of one policy side by side, in its colour."""
    flat = [
        (number, f"{name}, {part}" if part else name, value)
        for number, (name, of) in enumerate(values.items())
        for part, value in of.items()
    ]
    top = max([value for _, _, value in flat], default=0.0) or 1.0
    room = (WIDTH - LEFT - RIGHT) / max(1, len(flat))
    parts = [_level(HEIGHT - BOTTOM, "0"), _level(TOP, f"{top:.3g}")]
    for place, (number, name, value) in enumerate(flat):
        height = value / top * (HEIGHT - TOP - BOTTOM)
        parts.append(
            f'<rect x="{LEFT + (place + 0.1) * room:.1f}" y="{HEIGHT - BOTTOM - height:.1f}" width="{0.8 * room:.1f}" '
            f'height="{height:.1f}" fill="{_colour(number)}"><title>{escape(name)}: {value:.3g}</title></rect>'
        )
    return _svg(title, parts)


def legend(names: Sequence[str]) -> str:
    """Which colour is whose."""
    spots = "".join(
        f'<span><i style="background:{_colour(number)}"></i>{escape(name)}</span>' for number, name in enumerate(names)
    )
    return f'<p class="legend">{spots}</p>'


def _colour(number: int) -> str:
    if number < len(COLOURS):
        return COLOURS[number]
    return f"hsl({number * GOLDEN_ANGLE % 360:.0f},60%,42%)"


def _level(y: float, label: str) -> str:
    return (
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    )


def _svg(title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="11" role="img">'
        f'<text x="{LEFT}" y="15" font-weight="600">{escape(title)}</text>{"".join(parts)}</svg>'
    )

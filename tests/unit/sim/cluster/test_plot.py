"""Plots are well-formed, and names in them are escaped."""

from xml.etree import ElementTree as ET

from kinference.sim.cluster.plot import HEIGHT, bars, curves, legend


def test_a_curve_rises_with_its_values() -> None:
    root = ET.fromstring(curves("a & b", {"<one>": [0.01, 0.1, 10.0], "two": [0.0, 0.0, 0.0]}))
    points = [line.get("points", "").split() for line in root.iter("{http://www.w3.org/2000/svg}polyline")]
    heights = [float(point.split(",")[1]) for point in points[0]]
    assert heights == sorted(heights, reverse=True)
    assert len(points) == 2
    assert "<one>" in [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_bars_stand_in_proportion() -> None:
    root = ET.fromstring(
        bars("hits", {name: {"": value} for name, value in (("one", 1.0), ("half", 0.5), ("none", 0.0))})
    )
    heights = [float(bar.get("height", "")) for bar in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert heights[0] == 2 * heights[1] > heights[2] == 0.0


def test_the_bars_of_one_policy_have_the_colour_that_the_legend_says() -> None:
    names = [f"policy {number}" for number in range(24)]
    root = ET.fromstring(bars("tenants", {name: {"a": 1.0, "b": 2.0} for name in names}))
    colours = [bar.get("fill", "") for bar in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert colours[::2] == colours[1::2]
    assert len(set(colours)) == len(names)
    shown = legend(names)
    places = [shown.index(f"background:{colour}") for colour in colours[::2]]
    assert places == sorted(places)
    assert [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")][:2] == [
        "policy 0, a: 1",
        "policy 0, b: 2",
    ]


def test_no_name_stands_below_its_plot() -> None:
    root = ET.fromstring(curves("all", {f"policy {number}": [0.1, 1.0] for number in range(24)}))
    assert all(float(text.get("y", "")) < HEIGHT for text in root.iter("{http://www.w3.org/2000/svg}text"))


def test_nothing_to_show_is_still_a_plot() -> None:
    for svg in (bars("none", {}), curves("none", {})):
        ET.fromstring(svg)


def test_the_legend_names_all() -> None:
    assert "&lt;one&gt;" in legend(["<one>", "two"])

"""The report as a page and as JSON."""

import json
from dataclasses import replace

from kinference.sim.cluster.report import best, html_report, json_report
from kinference.sim.cluster.run import Played
from kinference.sim.cluster.scenarios import ENGINE
from kinference.sim.cluster.summary import summarize
from kinference.sim.cluster.table import COLUMNS, Line, Place

PLACE = Place("<chats>", "steady", 2, 0.8)


def lines_of(played: Played) -> list[Line]:
    summary = summarize(played, (ENGINE,) * 2)
    return [Line("good", [summary]), Line("slow", [replace(summary, ttft_s_mean=99.0, goodput=0.0)])]


def test_the_page_needs_no_other_file_and_marks_the_best(played: Played) -> None:
    page = html_report({PLACE: lines_of(played)})
    assert "&lt;chats&gt;" in page
    assert page.count("<svg") == 4
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert '<td title="99.00 to 99.00">99.00</td>' in page


def test_the_best_is_the_least_or_the_most(played: Played) -> None:
    lines = lines_of(played)
    by_head = {column.head: column for column in COLUMNS}
    assert best(by_head["TTFT mean s"], lines) < 99.0
    assert best(by_head["goodput"], lines) > 0.0


def test_json_holds_every_seed(played: Played) -> None:
    rows = json.loads(json_report({PLACE: lines_of(played)}))
    assert [row["policy"] for row in rows] == ["good", "slow"]
    assert rows[1]["seeds"][0]["ttft_s_mean"] == 99.0
    assert rows[0]["place"]["endpoints"] == 2

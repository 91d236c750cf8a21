"""The reference page of the metrics."""

from pathlib import Path

from kinference.observe.metrics import TABLE, Kind, Metric
from kinference.observe.reference import metrics_page

PAGE = Path(__file__).parents[3] / "docs/reference/metrics.md"


def test_the_published_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == metrics_page(), "run: python docs/generate.py"


def test_every_metric_has_its_row() -> None:
    rows = [line for line in metrics_page().splitlines() if line.startswith("| `")]
    assert len(rows) == len(TABLE)


def test_a_row_has_name_kind_labels_and_meaning() -> None:
    page = metrics_page((Metric("asked_total", Kind.COUNTER, "Asked.", ("a", "b")),))
    assert page.splitlines()[-1] == "| `asked_total` | counter | `a`, `b` | Asked. |"

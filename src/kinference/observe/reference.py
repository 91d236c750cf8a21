"""The reference page of the metrics, made from the table that they are recorded by."""

from collections.abc import Sequence

from kinference.observe.metrics import LABEL_VALUES_MAX, OTHER, TABLE, Metric

_OPENING = f"""# Metrics

Served in the Prometheus text format at `/metrics` of the admin address. A label takes at most {LABEL_VALUES_MAX}
distinct values; what comes after is counted under `{OTHER}`, and endpoints that left five minutes ago are shown no
more. On Linux those of every
process are beside them: who connects when `process_open_fds` has come to `process_max_fds` is disconnected, untold.

| metric | kind | labels | meaning |
|---|---|---|---|
"""


def metrics_page(table: Sequence[Metric] = TABLE) -> str:
    """The page, in Markdown."""
    return _OPENING + "".join(f"{_row(metric)}\n" for metric in table)


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.name}` | {metric.kind.name.lower()} | {labels} | {metric.help} |"

import pytest

from kinference.control.store import sql
from kinference.control.store.base import Kind, Row

ROUTE = Row(Kind.ROUTE, "r", b"body", "p")


@pytest.mark.parametrize(
    ("expected", "statement", "parameters"),
    [(None, sql.UPSERT, 5), (0, sql.CREATE, 5), (3, sql.REPLACE, 6)],
)
def test_what_is_expected_chooses_the_statement(expected: int | None, statement: str, parameters: int) -> None:
    chosen, given = sql.write(ROUTE, expected)
    assert (chosen, len(given)) == (statement, parameters)
    assert all(f"${place}" in chosen for place in range(1, parameters + 1))


def test_a_row_refers_to_a_provider_or_to_nothing() -> None:
    assert sql.values(ROUTE) == ("route", "r", "provider", "p", b"body")
    assert sql.values(Row(Kind.PROVIDER, "p", b"")) == ("provider", "p", None, None, b"")


@pytest.mark.parametrize(("month", "before"), [("2026-01", "2025-12"), ("2026-12", "2026-11"), ("1970-02", "1970-01")])
def test_the_month_before_may_be_of_the_year_before(month: str, before: str) -> None:
    assert sql.month_before(month) == before


def test_rows_are_put_back_after_what_they_refer_to() -> None:
    provider = Row(Kind.PROVIDER, "p", b"")
    assert sql.in_order([ROUTE, provider]) == [provider, ROUTE]


def test_rows_come_by_name() -> None:
    found = [("route", name, 1, None, b"") for name in ("b", "A", "é", "a")]
    assert [row.name for row in sql.rows_of(found)] == ["A", "a", "b", "é"]


def test_a_row_is_what_was_selected() -> None:
    assert sql.row_of(("route", "r", 4, "p", memoryview(b"body"))) == Row(Kind.ROUTE, "r", b"body", "p", 4)

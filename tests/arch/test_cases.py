"""Each known fault of gateways has tests of its number, and the published page names them."""

import re

from docs.cases import CASES, GROUPS, TESTS, cases_page, held_by
from tests.arch.source import report

PAGE = TESTS.parent / "docs/reference/cases.md"


def test_every_row_has_a_test() -> None:
    found = held_by()
    findings = [f"{row}: no test begins with test_{row}_" for row in CASES if row not in found]
    assert not findings, report(findings)


def test_every_number_that_a_test_carries_is_a_row() -> None:
    findings = [f"{tests[0]}: there is no row {row}" for row, tests in held_by().items() if row not in CASES]
    assert not findings, report(findings)


def test_rows_stand_in_order_under_their_groups() -> None:
    letters = [*GROUPS]
    assert [*CASES] == sorted(CASES, key=lambda row: (letters.index(row[0]), int(row[1:])))


def test_the_published_page_is_current() -> None:
    published = PAGE.read_text(encoding="utf-8")
    assert published == cases_page(), "run: python docs/generate.py"
    assert [row.lower() for row in re.findall(r"^\| ([A-J]\d+) ", published, re.MULTILINE)] == [*CASES]

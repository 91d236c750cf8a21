"""Our carrier against the table: every case by the section of the RFC that it is about."""

import re

import pytest

from tests.conformance.http2.case import Case
from tests.conformance.http2.cases import CASES
from tests.conformance.http2.client import Client
from tests.conformance.http2.differences import ENVOY, NGINX, Rule
from tests.conformance.http2.server import table_server

PATIENCE_S = 20.0


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_client_that(case: Case) -> None:
    async with table_server() as port:
        outcome = await Client(port, PATIENCE_S, settling=0).play(case)
    assert outcome == case.outcome


def test_every_case_has_a_name_of_its_own() -> None:
    assert len({str(case) for case in CASES}) == len(CASES) >= 120


@pytest.mark.parametrize("rule", [*ENVOY, *NGINX], ids=lambda rule: rule.reason)
def test_what_is_told_about_others_is_about_a_case(rule: Rule) -> None:
    assert any(re.search(rule.case, str(case)) for case in CASES)

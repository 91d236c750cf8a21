"""Our server keeps every clause of the contract, on every carrier, and holds nothing afterwards."""

import pytest

from kinference.conformance.case import Case
from kinference.conformance.cases import CASES
from kinference.conformance.clauses import CLAUSES
from kinference.conformance.runner import Verdict, run_case
from tests.conformance.serving import CARRIERS, GENEROUS, served, setup_for

BY_NAME = {case.name: case for case in CASES}


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_our_server_keeps(case: Case, carrier: str) -> None:
    async with served(setup_for(case), carrier) as server:
        result = await run_case(server.target, case)
        assert result.verdict is Verdict.PASSED, result.detail


@pytest.mark.parametrize("carrier", CARRIERS)
async def test_a_rule_that_names_the_empty_tenant_lets_it_in(carrier: str) -> None:
    async with served(GENEROUS, carrier) as server:
        result = await run_case(server.target, BY_NAME["pick.the-empty-tenant-is-the-value-empty"])
        assert result.verdict is Verdict.PASSED, result.detail


def test_every_clause_has_its_case_and_every_case_its_clause() -> None:
    proven = {number for case in CASES for number in case.clauses}
    assert proven == CLAUSES.keys()


def test_no_two_cases_have_one_name() -> None:
    assert len(BY_NAME) == len(CASES)

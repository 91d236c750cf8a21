"""The suite finds faults: each mutant of the server is caught by the very case that should."""

import pytest

from kinference.conformance import runner
from kinference.conformance.cases import CASES
from kinference.conformance.runner import Verdict, run_case
from tests.conformance.mutants import MUTANTS, Mutant
from tests.conformance.serving import served, setup_for, with_limits

BY_NAME = {case.name: case for case in CASES}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
async def test_a_fault_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    case = BY_NAME[mutant.caught_by]
    told = mutant.setup or setup_for(case)
    monkeypatch.setattr(runner, "CASE_TIMEOUT", 3.0)
    mutant.apply(monkeypatch)
    async with served(with_limits(told, mutant.limits), mutant.carrier, settles=False) as server:
        result = await run_case(told.target(server.target.port), case)
    assert result.verdict is Verdict.FAILED, f"{case.name} did not notice"
    assert result.detail


def test_every_group_of_cases_has_its_mutants() -> None:
    caught = {mutant.caught_by.partition(".")[0] for mutant in MUTANTS}
    assert caught == {case.name.partition(".")[0] for case in CASES}

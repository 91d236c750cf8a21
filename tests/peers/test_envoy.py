"""The conformance suite with Envoy between it and the server: what a mesh adds must change nothing."""

from dataclasses import replace

from kinference.conformance.cases import CASES
from kinference.conformance.runner import Verdict, run_case
from kinference.conformance.target import missing
from tests.conformance.serving import ROOMY, Served

THROUGH_A_PROXY = [case for case in CASES if not missing(case.needs, ROOMY.target())]


async def test_every_case_passes_through_a_proxy(server: Served, envoy: int) -> None:
    target = replace(server.target, port=envoy)
    results = [await run_case(target, case) for case in THROUGH_A_PROXY]
    failed = {result.case.name: result.detail for result in results if result.verdict is not Verdict.PASSED}
    assert failed == {}

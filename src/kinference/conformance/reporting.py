"""Results as JSON and as JUnit XML, for machines."""

import json
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

from kinference.conformance.clauses import CLAUSES
from kinference.conformance.runner import Result, Verdict


def count(results: Sequence[Result], verdict: Verdict) -> int:
    return sum(result.verdict is verdict for result in results)


def as_json(results: Sequence[Result], address: str) -> str:
    """Every result with its clauses in full."""
    listed = [
        {
            "case": result.case.name,
            "verdict": result.verdict.value,
            "detail": result.detail,
            "seconds": round(result.took, 3),
            "clauses": [
                {"number": number, "strength": CLAUSES[number].strength.value, "text": CLAUSES[number].text}
                for number in result.case.clauses
            ],
        }
        for result in results
    ]
    totals = {verdict.value: count(results, verdict) for verdict in Verdict}
    return json.dumps({"target": address, **totals, "results": listed}, indent=2)


def as_junit(results: Sequence[Result], address: str) -> str:
    """As CI systems read it: a test case each, by its group."""
    suite = Element(
        "testsuite",
        name="kinference.v1.Picker conformance",
        hostname=address,
        tests=str(len(results)),
        failures=str(count(results, Verdict.FAILED)),
        errors="0",
        skipped=str(count(results, Verdict.SKIPPED)),
        time=f"{sum(result.took for result in results):.3f}",
    )
    for result in results:
        group, _, name = result.case.name.partition(".")
        element = SubElement(suite, "testcase", classname=group, name=name, time=f"{result.took:.3f}")
        text = " ".join(f"{number}: {CLAUSES[number].text}" for number in result.case.clauses)
        if result.verdict is Verdict.FAILED:
            SubElement(element, "failure", message=_printable(result.detail)).text = text
        elif result.verdict is Verdict.SKIPPED:
            SubElement(element, "skipped", message=result.detail)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(suite, encoding="unicode") + "\n"


def _printable(text: str) -> str:
    """A server's own words may hold signs that XML has no way to write."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)

import json
from xml.etree import ElementTree as ET

from kinference.conformance.case import Case, Probe
from kinference.conformance.reporting import as_json, as_junit, count
from kinference.conformance.runner import Result, Verdict


async def nothing(_probe: Probe) -> None: ...


RESULTS = [
    Result(Case("push.one", ("P1", "P2"), (), nothing), Verdict.PASSED, took=0.5),
    Result(Case("pick.two", ("K1",), (), nothing), Verdict.FAILED, "expected <OK>, got \x00", 0.25),
    Result(Case("pick.three", ("K2",), (), nothing), Verdict.SKIPPED, "needs --model"),
]


def test_json_has_totals_and_the_text_of_each_clause() -> None:
    report = json.loads(as_json(RESULTS, "host:1"))
    assert (report["target"], report["passed"], report["failed"], report["skipped"]) == ("host:1", 1, 1, 1)
    first = report["results"][0]
    assert [clause["number"] for clause in first["clauses"]] == ["P1", "P2"]
    assert first["clauses"][0]["strength"] == "MUST"
    assert "half-close" in first["clauses"][0]["text"]


def test_junit_is_sound_xml_whatever_the_server_said() -> None:
    suite = ET.fromstring(as_junit(RESULTS, "host:1").encode())
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    one, two, three = suite
    assert (one.get("classname"), one.get("name"), list(one)) == ("push", "one", [])
    assert two[0].tag == "failure"
    assert two[0].get("message") == "expected <OK>, got ?"
    assert three[0].tag == "skipped"


def test_verdicts_are_counted() -> None:
    assert [count(RESULTS, verdict) for verdict in Verdict] == [1, 1, 1]

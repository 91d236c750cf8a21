"""`kinference explain`: the table, and what it refuses."""

import json
from pathlib import Path
from random import Random

import msgspec
import pytest
from msgspec.structs import replace

from kinference.cli import main
from kinference.core.fleet import EndpointSpec, Fleet
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules
from kinference.core.request import Request
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import Api

CONFIG = """\
pools:
  - name: p
    endpoints:
      - url: http://a:8000
      - url: http://b:8000
"""


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "body.json").write_text('{"model": "m", "messages": [{"role": "user", "content": "hello"}]}')
    return ["explain", "--config", str(tmp_path / "config.yaml"), "--request", str(tmp_path / "body.json")]


def test_the_table_shows_every_candidate_and_the_pick(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(flags) == 0
    shown = capsys.readouterr().out
    for text in ("default/p/a:8000", "default/p/b:8000", "picked", "next", "prefill", "OK: expect"):
        assert text in shown


def test_names_that_differ_at_their_ends_are_told_apart(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = [f"inference-engine-{number}.of.a.long.name.example" for number in (1, 2)]
    urls = ", ".join(f"'http://{host}:800{number}'" for number, host in enumerate(hosts))
    (tmp_path / "config.yaml").write_text(f"pools: [{{name: p, endpoints: [{urls}]}}]")
    assert main(flags) == 0
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert (shown.count("8000"), shown.count("8001")) == (1, 1)


def test_without_a_file_the_fleet_is_what_the_state_lists(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoints = [
        {"pool": "default/p", "address": f"{host}:8000", "models": ["m"], "waiting": waiting, "running": 5}
        for host, waiting in (("a", 90), ("b", 0))
    ]
    (tmp_path / "state.json").write_text(json.dumps({"endpoints": endpoints}))
    request = ["explain", "--request", flags[-1], "--state", str(tmp_path / "state.json"), "--json"]
    assert main(request) == 0
    told = json.loads(capsys.readouterr().out)["explanation"]
    assert (told["pick"], told["runner_up"]) == ("default/p/b:8000", "default/p/a:8000")


def test_a_state_that_leaves_nobody_is_refused_with_the_reason(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoints = [{"pool": "default/p", "address": f"{host}:8000", "ready": False, "models": ["m"]} for host in "ab"]
    (tmp_path / "state.json").write_text(json.dumps({"endpoints": endpoints}))
    assert main([*flags, "--state", str(tmp_path / "state.json"), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["outcome"] == "NO_WORKERS"
    assert {one["verdict"] for one in told["explanation"]["rejected"]} == {"not ready"}


def test_what_cannot_be_read_is_one_line(flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*flags, "--state", str(tmp_path / "missing.json")]) == 1
    assert "missing.json: cannot be read" in capsys.readouterr().err
    (tmp_path / "state.json").write_text('{"no": "list"}')
    assert main([*flags, "--state", str(tmp_path / "state.json")]) == 1
    assert "holds no endpoints" in capsys.readouterr().err
    (tmp_path / "config.yaml").write_text("pool: []")
    assert main(flags) == 1
    assert "config.yaml" in capsys.readouterr().err


def recorded(tmp_path: Path, pick: str = "") -> str:
    """A file as the admin port gives it; `pick` lies about the first one's."""
    fleet, pool = Fleet(), ObjectRef("default", "p")
    fleet.set_pool(pool, [EndpointSpec(pool, Address(f"{host}:1"), models=("m",)) for host in "ab"])
    fleet.set_ready(pool, Address("a:1"), ready=True)
    fleet.set_ready(pool, Address("b:1"), ready=True)
    router = Router(fleet, RoutingRules(), Random(1))
    router.recordings.resize(5)
    for now in range(3):
        router.decide(Request("m", Api.OPENAI_CHAT, (b"x" * 600,), 600), float(now))
    first, *others = router.recordings.newest(5)
    if pick:
        first = replace(first, pick=pick)
    path = tmp_path / "recordings.json"
    path.write_bytes(msgspec.json.encode({"recordings": [first, *others]}))
    return str(path)


def test_a_recording_is_made_again_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--recording", recorded(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "3 of 3 decisions come out as they were made" in shown
    assert shown.count("picked") == shown.count("next") == shown.count("the same pick") == 3


def test_a_recording_that_comes_out_otherwise_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--recording", recorded(tmp_path, "elsewhere")]) == 1
    assert "recorded was elsewhere" in capsys.readouterr().out
    assert main(["explain", "--recording", recorded(tmp_path, "elsewhere"), "--json"]) == 1
    assert [one["same"] for one in json.loads(capsys.readouterr().out)] == [False, True, True]


def test_what_is_no_recording_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.json").write_text('{"no": "list"}')
    assert main(["explain", "--recording", str(tmp_path / "r.json")]) == 1
    assert "holds no recordings" in capsys.readouterr().err


def test_a_request_needs_a_configuration(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *flags[3:]]) == 2
    assert "--request needs --config or --state" in capsys.readouterr().err


def refused(tmp_path: Path, reason: str = "") -> str:
    """A file of a refusal; `reason` lies about what was said."""
    fleet, pool = Fleet(), ObjectRef("default", "p")
    fleet.set_pool(pool, [EndpointSpec(pool, Address("a:1"), models=("m",))])
    router = Router(fleet, RoutingRules(), Random(1))
    router.refusals.resize(5)
    router.decide(Request("m", Api.OPENAI_CHAT, (b"x" * 600,), 600), 0.0)
    (refusal,) = router.refusals.newest(5)
    path = tmp_path / "refusals.json"
    path.write_bytes(msgspec.json.encode({"refusals": [replace(refusal, reason=reason) if reason else refusal]}))
    return str(path)


def test_a_refusal_is_made_again_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--recording", refused(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "not default/p/a:1: not ready" in shown
    assert "decision 0: NO_WORKERS: no worker for model 'm': 1 not ready; " in shown
    assert shown.endswith("1 of 1 decisions come out as they were made\n")


def test_a_refusal_that_comes_out_otherwise_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--recording", refused(tmp_path, "because"), "--json"]) == 1
    (shown,) = json.loads(capsys.readouterr().out)
    assert (shown["recorded"], shown["same"]) == ("NO_WORKERS: because", False)


def test_a_path_of_no_api_is_a_usage_error(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*flags, "--path", "/v1/massages"]) == 2
    assert "write it as clients do: /v1/messages" in capsys.readouterr().err


def test_a_name_of_usual_length_stays_whole(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "http://engine-7.of.the.fleet:8000"
    (tmp_path / "config.yaml").write_text(f"pools: [{{name: p, endpoints: ['{url}']}}]")
    assert main(flags) == 0
    assert "default/p/engine-7.of.the.fleet:8000" in capsys.readouterr().out

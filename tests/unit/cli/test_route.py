"""`kinference route`, against a real kinference."""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kinference.cli import route
from kinference.cli.admin_api import AdminApi, Refused
from tests.unit.cli.serving import admin_port

Run = Callable[..., str]


@pytest.fixture
def admin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("KINFERENCE_SECRET_KEY", "ab" * 32)
    with admin_port(tmp_path) as url:
        record = {
            "name": "p",
            "type": "openai",
            "credentials": {"K": "sk-1"},
            "config": {"OPENAI_BASE_URL": "mock://up"},
        }
        AdminApi(url).ask("POST", "/api/v1/providers", record)
        yield url


@pytest.fixture
def run(admin: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> str:
        parser = argparse.ArgumentParser()
        route.add(parser.add_subparsers())
        assert route.run(parser.parse_args(["route", *words, "--admin", admin])) == 0
        return capsys.readouterr().out

    return run


def test_a_set_route_is_told_in_the_words_that_scripts_match_on(run: Run) -> None:
    assert run("set", "--provider", "p", "--model", "m", "--timeout", "9").splitlines() == [
        "Gateway inference configured:",
        "",
        "  Route: inference.local",
        "  Provider: p",
        "  Model: m",
        "  Version: 1",
        "  Timeout: 9s",
        "  Validated Endpoints:",
        "    - mock://up/v1/chat/completions (openai_chat_completions)",
    ]
    assert "Validated" not in run("set", "--provider", "p", "--model", "m", "--no-verify", "--system")


def test_get_shows_both_routes_or_one(run: Run) -> None:
    nothing = "Gateway inference:\n\n  Not configured\n\nSystem inference:\n\n  Not configured\n"
    assert run("get") == nothing
    run("set", "--provider", "p", "--model", "m")
    assert "Gateway inference:\n\n  Route: inference.local\n  Provider: p\n" in run("get")
    assert run("get", "--system") == "System inference:\n\n  Not configured\n"
    (stored,) = json.loads(run("get", "--output", "json"))["routes"]
    assert (stored["route"], stored["version"], stored["broken"]) == ("inference.local", 1, None)


def test_update_changes_some_and_keeps_the_rest(run: Run) -> None:
    run("set", "--provider", "p", "--model", "m", "--timeout", "9")
    updated = json.loads(run("update", "--model", "n", "--output", "json"))
    assert (updated["provider"], updated["model"], updated["timeout_secs"], updated["version"]) == ("p", "n", 9, 2)
    assert json.loads(run("update", "--timeout", "0", "--output", "json"))["timeout_secs"] == 0


def test_update_needs_something_to_change_and_something_to_update(run: Run) -> None:
    with pytest.raises(Refused, match="at least one of"):
        run("update")
    with pytest.raises(Refused, match="not configured"):
        run("update", "--model", "n")


def test_a_further_route_is_shown_after_the_two(run: Run) -> None:
    assert run("set", "--route", "claude", "--provider", "p", "--model", "m").startswith("Route claude configured:\n")
    assert "System inference:\n\n  Not configured\n\nRoute claude:\n\n  Route: claude\n" in run("get")
    assert run("get", "--route", "claude").startswith("Route claude:\n\n  Route: claude\n")
    assert run("delete", "--route", "claude") == "Deleted route claude\n"


def test_delete_is_told_either_way(run: Run) -> None:
    run("set", "--provider", "p", "--model", "m")
    assert run("delete") == "Deleted route inference.local\n"
    assert run("delete") == "Route inference.local: Not configured\n"


def test_a_broken_route_says_so(run: Run, admin: str) -> None:
    run("set", "--provider", "p", "--model", "m")
    AdminApi(admin).ask("PATCH", "/api/v1/providers/p", {"credentials": {"K": ""}})
    assert "  Broken: provider 'p' has no usable API key credential" in run("get")


def test_a_failed_verification_ends_with_the_services_message(run: Run, admin: str) -> None:
    AdminApi(admin).ask("PATCH", "/api/v1/providers/p", {"config": {"OPENAI_BASE_URL": "http://127.0.0.1:1"}})
    with pytest.raises(Refused, match=r"failed to verify inference endpoint .*--no-verify"):
        run("set", "--provider", "p", "--model", "m")


@pytest.mark.parametrize("timeout", ["-1", "1.5", "x", "9" * 19])
def test_a_timeout_is_whole_seconds(timeout: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    route.add(parser.add_subparsers())
    with pytest.raises(SystemExit):
        parser.parse_args(["route", "set", "--provider", "p", "--model", "m", "--timeout", timeout])

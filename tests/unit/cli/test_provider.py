"""`kinference provider`, against a real kinference."""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kinference.cli import provider
from kinference.cli.admin_api import Refused
from kinference.control.provider_types import TYPES
from tests.unit.cli.serving import admin_port

Run = Callable[..., str]


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KINFERENCE_SECRET_KEY", "ab" * 32)
        with admin_port(tmp_path_factory.mktemp("store")) as url:
            yield url


@pytest.fixture
def run(admin: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: str) -> str:
        parser = argparse.ArgumentParser()
        provider.add(parser.add_subparsers())
        assert provider.run(parser.parse_args(["provider", *words, "--admin", admin])) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return f"p-{request.node.name[:200]}"


def test_a_record_is_made_shown_changed_and_deleted(run: Run, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    made = run(
        "create",
        name,
        "--type",
        "openai",
        "--credential-env",
        "OPENAI_API_KEY",
        "--config",
        "OPENAI_BASE_URL=mock://x=y",
    )
    assert made == f"Created provider {name}\n"
    shown = f"Name: {name}\nType: openai\nCredentials:\n  OPENAI_API_KEY: REDACTED\nConfig:\n  OPENAI_BASE_URL: mock://x=y\n"
    assert run("get", name) == shown
    assert run("update", name, "--config", "OPENAI_BASE_URL=") == f"Updated provider {name}\n"
    assert json.loads(run("get", name, "--output", "json"))["config"] == {}
    assert [name, "openai", "OPENAI_API_KEY"] in [line.split() for line in run("list").splitlines()]
    assert run("delete", name) == f"Deleted provider {name}\n"
    assert run("delete", name) == f"There is no provider {name}\n"


def test_credentials_come_from_variables_files_prompts_and_references(
    run: Run, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELSEWHERE", "sk-env")
    monkeypatch.setattr("getpass.getpass", lambda prompt: f"sk-{prompt}")
    (tmp_path / "key").write_text("sk-file\n")
    sources = ("--credential-env", "A=ELSEWHERE", "--credential-file", f"B={tmp_path / 'key'}")
    run("create", name, "--type", "openai", *sources, "--credential-prompt", "C", "--credential-ref", "D=${LATER}")
    shown = json.loads(run("get", name, "--output", "json"))["credentials"]
    assert shown == {"A": "REDACTED", "B": "REDACTED", "C": "REDACTED", "D": "${LATER}"}


def test_without_a_name_it_gets_one(run: Run) -> None:
    assert len(json.loads(run("create", "--type", "openai", "--output", "json"))["name"]) == 6


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("create", "--type", "openai", "--credential-env", "K=sk-secret"), "variable given for K is not set"),
        (
            ("create", "--type", "openai", "--credential-env", "sk-secret"),
            "a variable given to --credential-env is not",
        ),
        (
            ("create", "--type", "openai", "--credential-file", "K=sk-secret"),
            "file given for K cannot be read: No such",
        ),
        (("create", "--type", "openai", "--credential-file", "sk-secret"), "has no equals sign"),
        (("create", "--type", "openai", "--config", "OPENAI_API_KEY=sk-secret"), "looks like a secret"),
        (("get", "gone"), "provider 'gone' not found"),
    ],
)
def test_a_refusal_is_told_without_repeating_a_secret(run: Run, words: tuple[str, ...], problem: str) -> None:
    with pytest.raises(Refused, match=problem) as refusal:
        run(*words)
    assert "sk-secret" not in str(refusal.value)


def test_no_flag_takes_a_credential_itself() -> None:
    parser = argparse.ArgumentParser()
    provider.add(parser.add_subparsers())
    with pytest.raises(SystemExit):
        parser.parse_args(["provider", "create", "p", "--type", "openai", "--credential", "KEY=sk-secret"])


def test_a_type_that_serves_no_model_is_told_of(admin: str, capsys: pytest.CaptureFixture[str], name: str) -> None:
    parser = argparse.ArgumentParser()
    provider.add(parser.add_subparsers())
    for kind in ("nope", "openai"):
        made = parser.parse_args(["provider", "create", f"{name}-{kind}", "--type", kind, "--admin", admin])
        assert provider.run(made) == 0
    assert capsys.readouterr().err.splitlines() == [
        f"note: no route and no backend can use type 'nope'; those that serve models: {', '.join(each.name for each in TYPES)}"
    ]

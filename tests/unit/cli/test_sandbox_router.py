"""`kinference sandbox-router`: where its routes come from."""

import argparse
from pathlib import Path

import pytest

from kinference.cli import sandbox_router
from kinference.config.values import HostPort
from kinference.errors import ConfigError
from kinference.runtime.sandbox import SandboxOptions

VARIABLES = ("OPENSHELL_INFERENCE_ROUTES", "OPENSHELL_ENDPOINT")


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def options(*words: str) -> SandboxOptions:
    parser = argparse.ArgumentParser()
    sandbox_router.add(parser.add_subparsers())
    return sandbox_router.options_of(parser.parse_args(["sandbox-router", *words]))


def test_flags_win_over_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENSHELL_INFERENCE_ROUTES", "from-variable.yaml")
    monkeypatch.setenv("OPENSHELL_ENDPOINT", "http://variable:1")
    given = options("--routes", "given.yaml", "--endpoint", "http://given:1", "--listen", "[::1]:0")
    assert (given.routes_file, given.endpoint, given.listen) == (
        Path("given.yaml"),
        "http://given:1",
        HostPort("::1", 0),
    )
    found = options()
    assert (found.routes_file, found.endpoint) == (Path("from-variable.yaml"), "http://variable:1")
    assert found.proxy == HostPort("127.0.0.1", 3128)


@pytest.mark.parametrize("words", [(), ("--endpoint", "localhost:50051")])
def test_without_a_source_of_routes_there_is_nothing_to_do(words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="give --routes FILE, or --endpoint"):
        options(*words)


def test_an_address_needs_its_port(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options("--routes", "r.yaml", "--listen", "localhost")
    assert "HOST:PORT" in capsys.readouterr().err

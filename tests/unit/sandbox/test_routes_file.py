from pathlib import Path

import pytest

from kinference.errors import ConfigError
from kinference.sandbox.routes import SandboxRoute
from kinference.sandbox.routes_file import FILE_BYTES_MAX, read_routes

GOOD = """
routes:
  - name: inference.local
    endpoint: https://h/v1
    model: m
    provider_type: anthropic
    protocols: [" Anthropic_Messages ", anthropic_messages, model_discovery]
    api_key_env: THE_KEY
  - {name: second, endpoint: "mock://x", model: n, protocols: [openai_embeddings], api_key: written, api_key_env: NOT_SET}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "routes.yaml"


def test_fact60_two_routes_are_read(file: Path) -> None:
    file.write_text(GOOD)
    protocols = ("anthropic_messages", "model_discovery")
    assert read_routes(file, {"THE_KEY": "sk-1"}) == [
        SandboxRoute("inference.local", "https://h/v1", protocols, "sk-1", "m", "anthropic"),
        SandboxRoute("second", "mock://x", ("openai_embeddings",), "written", "n", "openai"),
    ]


def test_fact60_an_empty_list_is_no_error(file: Path) -> None:
    file.write_text("routes: []")
    assert read_routes(file, {}) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("routes: [", "not YAML"),
        ("\x00", "not YAML"),
        ("routes: {}", "Expected `array`"),
        ("", "Expected `object`"),
        ("routes: [{name: a, endpoint: b, model: c}]", "missing required field `protocols`"),
        ("routes: [{name: a, endpoint: b, model: c, protocols: [p], extra: 1}]", "unknown field `extra`"),
        ("routes: [{name: a, endpoint: b, model: c, protocols: [' ']}]", "no protocol"),
        ("routes: [{name: a, endpoint: b, model: ' ', protocols: [p], api_key: k}]", "model: is empty"),
        ("routes: [{name: a, endpoint: b, model: c, protocols: [p]}]", "neither api_key nor api_key_env"),
        ("routes: [{name: a, endpoint: b, model: c, protocols: [p], api_key_env: GONE}]", "GONE is not set"),
        ("#" * (FILE_BYTES_MAX + 1), "no route file is that long"),
    ],
)
def test_fact60_what_cannot_be_used_is_told_with_the_fix(file: Path, text: str, problem: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        read_routes(file, {})


def test_fact60_a_missing_file_is_told_so(file: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_routes(file, {})

"""From a file or from engine URLs to a configuration."""

import re
from pathlib import Path

import pytest

from kinference.config.load import FILE_BYTES_MAX, advice, from_engines, load, parse
from kinference.config.problems import InvalidConfig
from kinference.config.schema import Config

EXAMPLES = Path(__file__).parents[3] / "examples"
EXAMPLE_ENVIRON = {"OPENAI_API_KEY": "a", "ANTHROPIC_API_KEY": "b", "ALICE_KEY": "c", "NIGHTLY_KEY": "d"}


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "kinference.yaml"
    path.write_bytes(content)
    return path


def test_no_file_means_the_defaults() -> None:
    assert load(None) == Config()


@pytest.mark.parametrize("content", [b"{}", b"\xef\xbb\xbf{}"])
def test_an_empty_mapping_means_the_defaults(tmp_path: Path, content: bytes) -> None:
    assert load(written(tmp_path, content)) == Config()


@pytest.mark.parametrize("content", [b"", b"# nothing yet\n", b"\xef\xbb\xbf\n"])
def test_an_empty_file_is_taken_for_one_that_is_being_written(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InvalidConfig, match=r"the file: is empty; write \{\}"):
        load(written(tmp_path, content))


def test_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, b"limits: {body_ttl: 1m, ticket_ttl: 2m}")
    limits = load(path, {"KINFERENCE_LIMITS_BODY_TTL": "3m"}).limits
    assert (limits.body_ttl, limits.ticket_ttl) == (180.0, 120.0)


def test_what_the_environment_sets_is_checked_as_well() -> None:
    with pytest.raises(InvalidConfig, match=r"limits\.body_max_bytes: larger than buffer_max_bytes"):
        load(None, {"KINFERENCE_LIMITS_BODY_MAX_BYTES": "2GiB"})


def test_problems_of_the_file_and_of_the_environment_are_told_together() -> None:
    with pytest.raises(InvalidConfig) as refusal:
        parse("foo: 1\n", {"KINFERENCE_ROUTING_SEED": "x", "KINFERENCE_LIMITS_BODY_TTL": "y"})
    assert len(refusal.value.problems) == 3


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"a: \xff\n", "not UTF-8"), (b"#" * (FILE_BYTES_MAX + 1), "over 1048576 bytes"), (b"a: [", "expected")],
)
def test_a_file_that_cannot_be_read_as_text_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    with pytest.raises(InvalidConfig, match=problem):
        load(written(tmp_path, content))


def test_the_line_of_a_byte_that_is_not_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig) as refusal:
        load(written(tmp_path, b"a: 1\nb: \xff\n"))
    assert refusal.value.line == 2


def test_a_file_that_is_not_there_is_told_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"absent\.yaml: cannot be read: No such file"):
        load(tmp_path / "absent.yaml")
    with pytest.raises(InvalidConfig, match="cannot be read: Is a directory"):
        load(tmp_path)


def test_engines_alone_are_a_pool_called_default() -> None:
    (pool,) = from_engines(["http://a:8000", "http://b:8000"]).pools
    assert str(pool.ref) == "default/default"
    assert [str(endpoint.url) for endpoint in pool.endpoints] == ["http://a:8000", "http://b:8000"]


def test_engines_alone_take_overrides() -> None:
    assert from_engines(["http://a:1"], {"KINFERENCE_ROUTING_SEED": "3"}).routing.seed == 3


@pytest.mark.parametrize(
    ("urls", "told"),
    [
        (["host:8000"], "--engine[0]: not an http"),
        (["http://a:1", "http://a:1"], "--engine[1]: another endpoint"),
        ([], "--engine: no endpoint"),
        (["http://a:1/v1"], "--engine[0]: an engine's URL with a version"),
    ],
)
def test_engines_that_make_no_pool_are_refused_by_their_flag(urls: list[str], told: str) -> None:
    with pytest.raises(InvalidConfig, match=f"^{re.escape(told)}"):
        from_engines(urls)


@pytest.mark.parametrize("name", ["kinference.yaml", "minimal.yaml"])
def test_the_examples_load_without_advice(name: str) -> None:
    assert advice(load(EXAMPLES / name, EXAMPLE_ENVIRON), EXAMPLE_ENVIRON) == []


def test_the_example_names_the_variables_that_it_needs() -> None:
    with pytest.raises(InvalidConfig) as refusal:
        load(EXAMPLES / "kinference.yaml")
    assert len(refusal.value.problems) == len(EXAMPLE_ENVIRON)


def test_secrets_never_show_in_a_configuration_that_is_printed() -> None:
    config = load(EXAMPLES / "kinference.yaml", {name: f"hunter2-{name}" for name in EXAMPLE_ENVIRON})
    assert "hunter2" not in repr(config)
    assert config.gateway.keys[0].key.reveal() == "hunter2-ALICE_KEY"


def test_a_changed_secret_is_a_changed_configuration() -> None:
    text = "gateway: {keys: [{key: '${A}', tenant: a}]}"
    assert parse(text, {"A": "1"}) != parse(text, {"A": "2"})
    assert parse(text, {"A": "1"}) == parse(text, {"A": "1"})


def test_advice_covers_the_environment() -> None:
    assert advice(Config(), {"KINFERENCE_NOTHING": "1"}) == ["KINFERENCE_NOTHING sets nothing"]

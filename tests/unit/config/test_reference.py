"""The reference page, and values written back as the file would have them."""

from pathlib import Path

import yaml

from kinference.config.load import parse
from kinference.config.reference import reference_page, written
from kinference.config.schema import Config

ROOT = Path(__file__).parents[3]
ENVIRON = {
    "OPENAI_API_KEY": "hunter2a",
    "ANTHROPIC_API_KEY": "hunter2b",
    "ALICE_KEY": "hunter2c",
    "NIGHTLY_KEY": "hunter2d",
}


def example() -> Config:
    return parse((ROOT / "examples/kinference.yaml").read_text(encoding="utf-8"), ENVIRON)


def test_the_published_page_is_current() -> None:
    published = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
    assert published == reference_page(), "run: python docs/generate.py"


def test_a_row_has_type_default_meaning_and_variable() -> None:
    row = "| `limits.body_max_bytes` | size | `32MiB` | Largest request body. | `KINFERENCE_LIMITS_BODY_MAX_BYTES` |"
    assert row in reference_page().splitlines()


def test_what_is_written_reads_back_the_same() -> None:
    config = example()
    assert parse(yaml.safe_dump(written(config)), ENVIRON) == config


def test_the_defaults_read_back_the_same() -> None:
    assert parse(yaml.safe_dump(written(Config()))) == Config()


def test_secrets_are_written_as_references() -> None:
    text = yaml.safe_dump(written(example()))
    assert "${OPENAI_API_KEY}" in text
    assert "hunter2" not in text


def test_sizes_and_times_are_written_with_units() -> None:
    limits = written(Config())["limits"]
    assert (limits["body_max_bytes"], limits["ticket_ttl"], limits["drain_timeout"]) == ("32MiB", "1h", "30s")


def test_every_policy_is_told_with_its_parameters() -> None:
    lines = reference_page().partition("## Policies")[2].splitlines()
    assert "| `round_robin` | | | Each endpoint in its turn, whatever its load. |" in lines
    assert any(line.startswith("| | `lambda_itl` | `0.02` | what stalling") for line in lines)

"""The table of single values: what its JSON Schema part accepts, its reader accepts."""

import re
from typing import Any

import pytest

from kinference.config.env import secret_reader
from kinference.config.scalars import scalars
from kinference.config.values import Count, Duration, HostPort, HttpPath, Name, Secret, Size, StoreUrl, Url
from kinference.ids import ObjectRef

TABLE = scalars(secret_reader({"KEY": "value"}))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Size, "32MiB"),
        (Size, "32 MiB"),
        (Duration, "1.5h"),
        (Duration, "30 s"),
        (Name, "llama"),
        (ObjectRef, "team/llama"),
        (HostPort, "[::1]:0"),
        (Url, "https://host:1/prefix"),
        (HttpPath, "/v1/chat"),
        (HttpPath, "/openai/deployments/x/chat/completions?api-version=2026-01-01"),
        (Secret, "${KEY}"),
        (StoreUrl, "sqlite:///control.db"),
        (StoreUrl, "postgresql://kinference@db:5432/kinference?sslmode=verify-full"),
    ],
)
def test_the_reader_and_the_schema_pattern_agree(kind: Any, text: str) -> None:
    schema = TABLE[kind].schema
    pattern = schema["pattern"] if "pattern" in schema else schema["anyOf"][1]["pattern"]
    assert re.search(pattern, text)
    TABLE[kind].parse(text)


def test_numbers_need_no_quotes_and_text_does() -> None:
    assert not any(TABLE[kind].is_text for kind in (int, float, bool, Count, Size, Duration))
    assert all(TABLE[kind].is_text for kind in (str, Name, ObjectRef, HostPort, Url, HttpPath, StoreUrl, Secret))


def test_what_may_hold_a_secret_is_kept_out_of_messages() -> None:
    assert [kind for kind, scalar in TABLE.items() if scalar.is_secret] == [StoreUrl, Secret]

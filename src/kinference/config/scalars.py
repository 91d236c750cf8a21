"""One row for each kind of single value: how its text is read, and what the JSON Schema and the reference page say."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from kinference.config import values
from kinference.config.values import Count, Duration, HostPort, HttpPath, Name, Secret, Size, StoreUrl, Url
from kinference.ids import ObjectRef


@dataclass(frozen=True, slots=True)
class Scalar:
    """How one kind of value is read from its text."""

    called: str
    parse: Callable[[str], Any]
    schema: Mapping[str, Any]
    is_text: bool = True
    """YAML must see it as text: `1.0` without quotes is a number, and whoever meant a version is told so."""
    is_secret: bool = False
    """What was found is never repeated in a message."""


def _text(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": pattern}


def _either(number: str, pattern: str) -> dict[str, Any]:
    return {"anyOf": [{"type": number, "minimum": 0}, _text(pattern)]}


def scalars(read_secret: Callable[[str], Secret]) -> Mapping[Any, Scalar]:
    """The table. Reading a secret needs the environment, so the reader of secrets is handed in."""
    count = {"type": "integer", "minimum": 0, "maximum": values.COUNT_MAX}
    return MappingProxyType(
        {
            str: Scalar("text", values.parse_text, {"type": "string"}),
            int: Scalar("whole number", values.parse_integer, {"type": "integer"}, is_text=False),
            bool: Scalar("true or false", values.parse_flag, {"type": "boolean"}, is_text=False),
            float: Scalar("number", values.parse_number, {"type": "number"}, is_text=False),
            Count: Scalar("whole number", values.parse_count, count, is_text=False),
            Size: Scalar("size", values.parse_size, _either("integer", values.SIZE_PATTERN), is_text=False),
            Duration: Scalar("time", values.parse_duration, _either("number", values.DURATION_PATTERN), is_text=False),
            Name: Scalar("name", values.parse_name, _text(values.NAME_PATTERN)),
            ObjectRef: Scalar("reference", values.parse_ref, _text(values.REF_PATTERN)),
            HostPort: Scalar("host:port", values.parse_host_port, _text(values.HOST_PORT_PATTERN)),
            Url: Scalar("URL", values.parse_url, _text(values.URL_PATTERN)),
            StoreUrl: Scalar("store", values.parse_store, _text(values.STORE_PATTERN), is_secret=True),
            HttpPath: Scalar("path", values.parse_path, _text(values.PATH_PATTERN)),
            Secret: Scalar("secret", read_secret, _text(values.REFERENCE_PATTERN), is_secret=True),
        }
    )

"""The JSON Schema of the configuration file, derived from the dataclass tree, for editors and pipelines."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kinference.config.destinations import Pool
from kinference.config.discovery import Discovery, KubernetesDiscovery
from kinference.config.env import secret_reader
from kinference.config.keys import Key, Kind, is_choice, item_of, keys_of, spellings, value_of
from kinference.config.reference import default_of
from kinference.config.scalars import Scalar, scalars
from kinference.config.schema import Config

Schema = dict[str, Any]

ALTERNATIVES: Final[Mapping[type, Sequence[str]]] = {
    Pool: ("endpoints", "discovery"),
    Discovery: ("dns", "kubernetes"),
    KubernetesDiscovery: ("match_labels", "service", "inference_pool"),
}
"""Keys of which an object needs one; that it has no more of them is for the loader to say."""


def json_schema() -> Schema:
    """The schema, in the dialect of 2020-12."""
    title = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "kinference configuration"}
    return title | _object(Config, scalars(secret_reader({})))


def _object(cls: type, table: Mapping[Kind, Scalar]) -> Schema:
    keys = keys_of(cls).values()
    schema: Schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {key.name: _property(key, table) for key in keys},
    }
    if required := [key.name for key in keys if key.is_required]:
        schema["required"] = required
    if alternatives := ALTERNATIVES.get(cls):
        schema["anyOf"] = [{"required": [name]} for name in alternatives]
    return schema


def _property(key: Key, table: Mapping[Kind, Scalar]) -> Schema:
    schema = {"description": key.help} | _of(key.kind, table)
    if (default := default_of(key, table)) is not None:
        schema["default"] = default
    return schema


def _of(kind: Kind, table: Mapping[Kind, Scalar]) -> Schema:
    if kind in table:
        return dict(table[kind].schema)
    if is_choice(kind):
        return {"enum": list(spellings(kind))}
    if (item := item_of(kind)) is not None:
        return {"type": "array", "items": _of(item, table)}
    if (value := value_of(kind)) is not None:
        return {"type": "object", "additionalProperties": _of(value, table)}
    short = next((key for key in keys_of(kind).values() if key.shorthand), None)
    whole = _object(kind, table)
    return whole if short is None else {"anyOf": [_of(short.kind, table), whole]}

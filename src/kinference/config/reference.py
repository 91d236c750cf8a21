"""The reference page of the configuration, and how a value is written back in the file's own spelling."""

import dataclasses
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from kinference.config.env import secret_reader, variable_of
from kinference.config.keys import Key, Kind, is_choice, item_of, keys_of, settings, spellings, value_of
from kinference.config.scalars import Scalar, scalars
from kinference.config.schema import Config
from kinference.config.values import Duration, HostPort, Secret, Size, Url, spell_duration, spell_size
from kinference.core.policies import POLICIES
from kinference.ids import ObjectRef

Written = Any
"""Plain lists, dicts, text and numbers, fit for JSON and YAML."""

_OPENING = """# Configuration

One YAML file, given as `kinference serve --config FILE`. Every key has a default unless it is marked required.
Unknown keys are errors. Sizes are bytes or `64KiB`, `32MiB`, `1GiB`; times are seconds or `500ms`, `30s`, `2m`, `1h`.
Secrets are references, never literals: `${NAME}` reads the environment, `file:PATH` a file (one trailing line break is
taken off). A variable in the last column overrides the file.

The file, and the secrets with it, is read again when it changes and on SIGHUP. A file with problems is logged and the
old configuration stays in force. Changes of `listen`, `limits` and `control` wait for the next start.

Check a file with `kinference config check FILE`; print its JSON Schema with `kinference config schema`.
"""

_POLICIES = """
## Policies

What `routing.policy` may name, and the numbers that `routing.parameters` may set for it, from 0 up.

| policy | parameter | default | meaning |
|---|---|---|---|"""


def written(value: object, kind: Kind = None) -> Written:
    """A decoded value as the file would have it, `kind` its type in the tree. Secrets come out as their references."""
    if isinstance(value, Enum):
        return next(text for text, member in spellings(type(value)).items() if member is value)
    if isinstance(value, HostPort | Url | Secret | ObjectRef):
        return str(value)
    if kind is Size and isinstance(value, int):
        return spell_size(value)
    if kind is Duration and isinstance(value, float):
        return spell_duration(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        found = {key.name: written(getattr(value, key.attribute), key.kind) for key in keys_of(type(value)).values()}
        return {name: each for name, each in found.items() if each is not None}
    if isinstance(value, Mapping):
        return {name: written(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [written(each) for each in value]
    return value


def default_of(key: Key, table: Mapping[Kind, Scalar]) -> Written:
    """The default as the file would have it; None for what is required, optional or a section."""
    is_section = dataclasses.is_dataclass(key.kind) and key.kind not in table
    return None if is_section else written(key.default, key.kind)


def reference_page() -> str:
    """The page, in Markdown."""
    table = scalars(secret_reader({}))
    variables = {setting.path: variable_of(setting) for setting in settings(Config, table)}
    rows = [_row(path, key, variables, table) for path, key in _all_keys(Config, "", table)]
    head = ["| key | type | default | meaning | environment |", "|---|---|---|---|---|"]
    return "\n".join([_OPENING, *head, *rows, _POLICIES, *_policy_rows()]) + "\n"


def _policy_rows() -> Iterator[str]:
    for name, policy in POLICIES.items():
        summary = (policy.__doc__ or "").partition("\n")[0]
        yield f"| `{name}` | | | {summary} |"
        for parameter in dataclasses.fields(policy()):
            yield f"| | `{parameter.name}` | `{parameter.default}` | {parameter.metadata['help']} |"


def _all_keys(cls: type, path: str, table: Mapping[Kind, Scalar]) -> Iterator[tuple[str, Key]]:
    for key in keys_of(cls).values():
        here = path + key.name
        yield here, key
        item = item_of(key.kind)
        inner = key.kind if item is None else item
        if isinstance(inner, type) and dataclasses.is_dataclass(inner) and inner not in table:
            yield from _all_keys(inner, f"{here}." if item is None else f"{here}[].", table)


def _row(path: str, key: Key, variables: Mapping[str, str], table: Mapping[Kind, Scalar]) -> str:
    default = "required" if key.is_required else _default(key, table)
    variable = f"`{variables[path]}`" if path in variables else ""
    return f"| `{path}` | {_called(key.kind, table)} | {default} | {key.help} | {variable} |"


def _default(key: Key, table: Mapping[Kind, Scalar]) -> str:
    default = default_of(key, table)
    if default is None:
        return ""
    return f"`{default}`" if default != "" else '`""`'


def _called(kind: Kind, table: Mapping[Kind, Scalar]) -> str:
    if kind in table:
        return table[kind].called
    if is_choice(kind):
        return ", ".join(f"`{text}`" for text in spellings(kind))
    if (item := item_of(kind)) is not None:
        return "list" if dataclasses.is_dataclass(item) else f"list of {_called(item, table)}"
    if (value := value_of(kind)) is not None:
        return f"mapping to {_called(value, table)}"
    return "section"

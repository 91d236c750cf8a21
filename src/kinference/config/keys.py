"""What the dataclass tree says of itself: the keys of each class, and which of them are single values."""

import dataclasses
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import cache
from types import NoneType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

Kind: TypeAlias = Any
"""A type as an annotation names it, such as `tuple[str, ...]`: Python has no type for that."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key of one class."""

    name: str
    """As the file has it."""
    attribute: str
    kind: Kind
    """Its type, without the None of an optional key."""
    help: str
    is_required: bool
    default: Any
    shorthand: bool


@cache
def keys_of(cls: type) -> Mapping[str, Key]:
    """The keys of a class by their names in the file, in the order of declaration."""
    hints = get_type_hints(cls)
    keys = [_key(field, hints[field.name]) for field in dataclasses.fields(cls)]
    return {key.name: key for key in keys}


def _key(field: dataclasses.Field[Any], kind: Kind) -> Key:
    required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    default = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    return Key(
        name=field.metadata["name"] or field.name,
        attribute=field.name,
        kind=_without_none(kind),
        help=field.metadata["help"],
        is_required=required,
        default=None if required else default,
        shorthand=field.metadata["shorthand"],
    )


def _without_none(kind: Kind) -> Kind:
    if NoneType in get_args(kind):
        (kind,) = (part for part in get_args(kind) if part is not NoneType)
    return kind


def item_of(kind: Kind) -> Kind | None:
    """The type of the items, if this is a list of them."""
    origin: object = get_origin(kind)
    return get_args(kind)[0] if origin is tuple else None


def value_of(kind: Kind) -> Kind | None:
    """The type of the values, if this is a mapping from text to them."""
    origin: object = get_origin(kind)
    return get_args(kind)[1] if origin is Mapping else None


def is_choice(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


def spellings(choice: type[Enum]) -> dict[str, Enum]:
    """The members of a choice as the file spells them."""
    return {(member.name.lower() if isinstance(member, IntEnum) else member.value): member for member in choice}


@dataclass(frozen=True, slots=True)
class Setting:
    """A key that the environment may override: a single value at the top, in a section, or in one within that."""

    sections: tuple[Key, ...]
    key: Key

    @property
    def path(self) -> str:
        return ".".join(each.name for each in (*self.sections, self.key))


def settings(config: type, single: Container[Kind], sections: tuple[Key, ...] = ()) -> Iterator[Setting]:
    """Every setting of the tree. `single` are the types that are read from one text."""
    for key in keys_of(config).values():
        if _is_single(key.kind, single):
            yield Setting(sections, key)
        elif isinstance(key.kind, type) and dataclasses.is_dataclass(key.kind):
            yield from settings(key.kind, single, (*sections, key))


def _is_single(kind: Kind, single: Container[Kind]) -> bool:
    return kind in single or is_choice(kind)


def about(text: str, *, name: str = "", shorthand: bool = False) -> dict[str, Any]:
    """What a key carries beside its type and default: its help, its name in the file where Python has taken that
    word, and whether its value alone may stand for the whole object.
    """
    return {"help": text, "name": name, "shorthand": shorthand}

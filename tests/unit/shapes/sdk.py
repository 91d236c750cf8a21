"""The official SDKs' request types, for holding our tables of fields against them."""

from collections.abc import Iterable, Mapping
from typing import Any, get_args, get_origin

from kinference.shapes.concepts import Fields


def unknown(fields: Fields, types: Mapping[str, Iterable[Any]]) -> list[str]:
    """Keys of the SDK's types that the table of their kind does not have."""
    return [
        f"{kind}: {key} of {one.__name__}"
        for kind, several in types.items()
        for one in several
        for key in sorted((one.__required_keys__ | one.__optional_keys__) - fields[kind].keys())
    ]


def members(union: Any) -> list[Any]:
    """The types of a union, annotations taken off."""
    while get_origin(union) is not None and hasattr(union, "__metadata__"):
        union = get_args(union)[0]
    return [one for part in get_args(union) for one in (members(part) if get_args(part) else [part])]


def kind_of(one: Any) -> set[str]:
    """The values of its `type`."""
    for base in (one, *one.__mro__):
        if "type" in getattr(base, "__annotations__", {}):
            return set(literals(base.__annotations__["type"], base))
    return set()


def literals(annotation: Any, owner: Any) -> list[str]:
    if not isinstance(annotation, str) and hasattr(annotation, "__forward_arg__"):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        text = annotation.partition("Literal[")[2].partition("]")[0]
        return [value.strip().strip("\"'") for value in text.split(",") if value.strip()]
    inner = get_args(annotation)
    if inner and all(isinstance(value, str) for value in inner):
        return list(inner)
    return [value for part in inner for value in literals(part, owner)]

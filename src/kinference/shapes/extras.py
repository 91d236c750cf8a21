"""Fields of a body that carry no concept: told, passed over or refused, as the API's table says."""

from collections.abc import Iterator, Mapping
from typing import Final

from kinference.shapes.concepts import Carried, Fields, Treatment
from kinference.shapes.ir import Json
from kinference.shapes.lost import Untranslatable, safe

_DROPPED: Final = Treatment.DROPPED
_REFUSED: Final = Treatment.REFUSED
"""Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant."""
_NOTHING: Final[tuple[object, ...]] = (None, False, "", [], {})


def extras(body: Json, fields: Fields, kind: str, defaults: Mapping[str, object]) -> Iterator[str]:
    """The names of what is lost of an object of this kind, whatever the destination's API. A field that asks for
    nothing, or for its default, is no loss. Raises Untranslatable.
    """
    table: Mapping[str, Carried] = fields[kind]
    prefix = f"{kind}." if kind else ""
    for name, value in body.items():
        carried = table.get(name, _DROPPED)
        if (carried is not _DROPPED and carried is not _REFUSED) or defaults.get(name) == value:
            continue
        if value in _NOTHING and not (carried is _REFUSED and value == {}):  # which asks for a search
            continue
        if carried is _REFUSED:
            raise Untranslatable(f"{prefix}{name}: no destination of another API can carry it")
        yield f"{prefix}{safe(name)}"

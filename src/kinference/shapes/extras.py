"""Fields of a body that carry no concept: told, passed over or refused, as the API's table says."""

from collections.abc import Iterator, Mapping

from kinference.shapes.concepts import Carried, Fields, Treatment
from kinference.shapes.ir import Json
from kinference.shapes.lost import Untranslatable, safe

_NOTHING: tuple[object, ...] = (None, False, "", [], {})


def extras(body: Json, fields: Fields, kind: str, defaults: Mapping[str, object]) -> Iterator[str]:
    """The names of what is lost of an object of this kind, whatever the destination's API. A field that asks for
    nothing, or for its default, is no loss. Raises Untranslatable.
    """
    table: Mapping[str, Carried] = fields[kind]
    prefix = f"{kind}." if kind else ""
    for name, value in body.items():
        carried = table.get(name, Treatment.DROPPED)
        if (carried is not Treatment.DROPPED and carried is not Treatment.REFUSED) or defaults.get(name) == value:
            continue
        if value in _NOTHING and not (carried is Treatment.REFUSED and value == {}):  # which asks for a search
            continue
        if carried is Treatment.REFUSED:
            raise Untranslatable(f"{prefix}{name}: no destination of another API can carry it")
        yield f"{prefix}{safe(name)}"

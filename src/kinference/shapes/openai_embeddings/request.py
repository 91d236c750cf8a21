"""An Embeddings request read into the one representation."""

from typing import Final

from kinference.shapes.concepts import Concept, Fields, Treatment
from kinference.shapes.extras import extras
from kinference.shapes.ir import Json, Request
from kinference.shapes.json_text import count_of, string_of, strings_of
from kinference.shapes.lost import Untranslatable
from kinference.shapes.scan import BadBody

FIELDS: Final[Fields] = {
    "": {
        "model": Treatment.MAPPED,
        "input": Concept.EMBEDDINGS,
        "dimensions": Concept.EMBEDDINGS,
        "encoding_format": Treatment.MAPPED,
        "user": Treatment.IGNORED,
    },
}
"""Every field of an Embeddings request, and what it is to other APIs."""


def parse_request(body: Json) -> Request:
    """Read a request. Raises BadBody."""
    given = body.get("input")
    if isinstance(given, list) and given and not isinstance(given[0], str):
        raise Untranslatable("input: tokens mean something to their own model alone")
    inputs = strings_of(given, "input")
    if not inputs:
        raise BadBody("input: empty; the body has to carry its prompt")
    return Request(
        model=string_of(body.get("model"), "model"),
        inputs=inputs,
        dimensions=count_of(body.get("dimensions"), "dimensions"),
        wants_usage=True,
        extras=tuple(extras(body, FIELDS, "", {})),
    )

"""What clouds ask of a body beyond the API whose shape it has."""

import re
from typing import Final

from kinference.shapes.patch import replace_member
from kinference.vocabulary import Api

_VERTEX_ANTHROPIC: Final = b'"anthropic_version":"vertex-2023-10-16"'
_BEDROCK = re.compile(r"(?:[a-z0-9-]+\.)*?(?:bedrock|bedrock-runtime)(?:-fips)?\.([a-z]{2}(?:-[a-z]+)+-\d+)\.")


def region_of(host: str) -> str:
    """The region that a host of Amazon Bedrock's belongs to; "" where the name tells none."""
    found = _BEDROCK.match(host)
    return found[1] if found else ""


def hosted(body: bytes, destination: Api) -> bytes:
    """The body as this host takes it; the same object where it asks for nothing. Raises BadBody."""
    if destination is Api.VERTEX_ANTHROPIC:
        return replace_member(body, "model", _VERTEX_ANTHROPIC)  # its path names the model
    return body

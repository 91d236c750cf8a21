"""Signed thoughts of another provider inside what clients keep without looking: Responses' `encrypted_content`, and the
`data` of what Chat clients know as redacted thinking.
"""

import base64
import binascii
from typing import Final

from kinference.shapes.ir import Reasoning, Sealed
from kinference.shapes.json_text import dumps, loads
from kinference.shapes.scan import BadBody
from kinference.vocabulary import Api

_MARK: Final = "kinference."
_ISSUERS: Final = {api.value: api for api in Api}


def sealed(thought: Reasoning | Sealed) -> str | None:
    """What to keep for its issuer; None where nobody signed it."""
    if thought.issuer is None:
        return None
    key, value = ("data", thought.data) if isinstance(thought, Sealed) else ("signature", thought.signature)
    text = dumps({"issuer": thought.issuer.value, key: value})
    return _MARK + base64.urlsafe_b64encode(text).decode()


def unsealed(content: str, text: str) -> Reasoning | Sealed | None:
    """The thought as its issuer gave it; None where the seal is not of ours."""
    if not content.startswith(_MARK):
        return None
    try:
        kept = loads(base64.urlsafe_b64decode(content.removeprefix(_MARK)))
    except (binascii.Error, ValueError, BadBody):
        return None
    issuer = _ISSUERS.get(str(kept.get("issuer"))) if isinstance(kept, dict) else None
    if not isinstance(kept, dict) or issuer is None:
        return None
    if "data" in kept:
        return Sealed(str(kept["data"]), issuer)
    return Reasoning(text, str(kept.get("signature", "")), issuer)

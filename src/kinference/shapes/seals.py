"""Signed thoughts of another provider inside what clients keep without looking: Messages' and Chat's signatures and
redacted thinking, Responses' `encrypted_content`, Gemini's `thoughtSignature`.
"""

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import Final

from kinference.shapes.ir import Block, Reasoning, Sealed
from kinference.shapes.json_text import dumps, loads
from kinference.shapes.scan import BadBody
from kinference.vocabulary import Api

MARK: Final = "kinference."
NO_SIGNATURE: Final = base64.b64encode(b"skip_thought_signature_validator").decode()
"""What Google documents for calls whose own signature is lost."""

_MARKED: Final = base64.b64encode(MARK[:9].encode()).decode()
"""How every seal begins in base64: as many letters as the mark's first nine alone make out."""
_ISSUERS: Final = {api.value: api for api in Api}
_STANDARD: Final = str.maketrans("-_", "+/")


def sealed(thought: Reasoning | Sealed) -> str | None:
    """What to keep for its issuer; None where nobody signed it."""
    if thought.issuer is None:
        return None
    key, value = ("data", thought.data) if isinstance(thought, Sealed) else ("signature", thought.signature)
    text = dumps({"issuer": thought.issuer.value, key: value})
    return MARK + base64.urlsafe_b64encode(text).decode()


def unsealed(content: str, text: str) -> Reasoning | Sealed | None:
    """The thought as its issuer gave it; None where the seal is not of ours."""
    if not content.startswith(MARK):
        return None
    try:
        kept = loads(base64.urlsafe_b64decode(content.removeprefix(MARK)))
    except (binascii.Error, ValueError, BadBody):
        return None
    issuer = _ISSUERS.get(str(kept.get("issuer"))) if isinstance(kept, dict) else None
    if not isinstance(kept, dict) or issuer is None:
        return None
    if "data" in kept:
        return Sealed(str(kept["data"]), issuer)
    return Reasoning(text, str(kept.get("signature", "")), issuer)


def own_or_sealed(thought: Reasoning | Sealed, owner: Api) -> str:
    """A signature as clients of the owner's API keep it: the owner's as it is, another's sealed."""
    if thought.issuer is owner:
        return thought.data if isinstance(thought, Sealed) else thought.signature
    return sealed(thought) or ""


def is_gemini(model: str) -> bool:
    """Whether a model signs as Gemini does, whatever API it is asked in."""
    return "gemini-" in model


def geminis_signatures(blocks: Iterable[Block]) -> Iterator[str]:
    """One for each call of a turn, in order, until there are no more: those that Gemini gave, else the placeholder."""
    return iter([block.data for block in blocks if type(block) is Sealed] or [NO_SIGNATURE])


def in_base64(seal: str) -> str:
    """A seal where clients want base64."""
    return base64.b64encode(seal.encode()).decode()


def from_base64(content: str) -> str:
    """A seal that was in base64 of either alphabet; "" of whatever is none."""
    if not content.startswith(_MARKED):
        return ""
    try:
        seal = base64.b64decode(content.translate(_STANDARD), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return ""
    return seal if seal.startswith(MARK) else ""

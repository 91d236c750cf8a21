"""What tier of service an answer came by: in OpenAI's words within, in each API's own in what its clients are told."""

from collections.abc import Mapping
from typing import Final

from kinference.vocabulary import Api

_OPENAI: Final = frozenset({"auto", "default", "flex", "scale", "priority", "fast"})
_OF_MESSAGES: Final[Mapping[str, str]] = {"standard": "default", "priority": "priority", "batch": "default"}
_TO_MESSAGES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("default", "flex"), "standard"),
    **dict.fromkeys(("priority", "fast", "scale"), "priority"),
}
_OF_CONVERSE: Final[Mapping[str, str]] = {
    "default": "default",
    "priority": "priority",
    "flex": "flex",
    "reserved": "scale",
}
_OF_GEMINI: Final[Mapping[str, str]] = {
    **dict.fromkeys(("standard", "ON_DEMAND", "ON_DEMAND_OFFPEAK"), "default"),
    **dict.fromkeys(("priority", "ON_DEMAND_PRIORITY"), "priority"),
    **dict.fromkeys(("flex", "ON_DEMAND_FLEX"), "flex"),
    "PROVISIONED_THROUGHPUT": "scale",
}
_TO_GEMINI: Final[Mapping[str, str]] = {
    "default": "ON_DEMAND",
    "flex": "ON_DEMAND_FLEX",
    **dict.fromkeys(("priority", "fast"), "ON_DEMAND_PRIORITY"),
    "scale": "PROVISIONED_THROUGHPUT",
}
_OF: Final[Mapping[Api, Mapping[str, str]]] = {
    Api.OPENAI_CHAT: dict(zip(_OPENAI, _OPENAI, strict=True)),
    Api.ANTHROPIC_MESSAGES: _OF_MESSAGES,
    Api.BEDROCK_CONVERSE: _OF_CONVERSE,
    Api.GEMINI: _OF_GEMINI,
}
_TO: Final[Mapping[Api, Mapping[str, str]]] = {Api.ANTHROPIC_MESSAGES: _TO_MESSAGES, Api.GEMINI: _TO_GEMINI}


def tier_of(api: Api, word: object) -> str | None:
    """The tier that an answer of this API names; None where it names none that is known. OpenAI's are of Chat."""
    return _OF[api].get(word) if isinstance(word, str) else None


def tier_to(api: Api, tier: str | None) -> str | None:
    """What its clients are told; None where it has no word for it."""
    return None if tier is None else _TO[api].get(tier)

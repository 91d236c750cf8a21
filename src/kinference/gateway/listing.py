"""Model lists, in each dialect."""

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from kinference.gateway.backends import ServedModel
from kinference.gateway.routes import Dialect

_METHODS = ("generateContent", "countTokens")


def of_many(models: Iterable[ServedModel], dialect: Dialect) -> bytes:
    """The list of models, by name, each once."""
    by_id = {model.id: model for model in models}
    shown = [_shape(by_id[name], dialect) for name in sorted(by_id)]
    if dialect is Dialect.GEMINI:
        return msgspec.json.encode({"models": shown})
    if dialect is Dialect.OPENAI:
        return msgspec.json.encode({"object": "list", "data": shown})
    first, last = (shown[0]["id"], shown[-1]["id"]) if shown else (None, None)
    return msgspec.json.encode({"data": shown, "has_more": False, "first_id": first, "last_id": last})


def of_one(model: ServedModel, dialect: Dialect) -> bytes:
    """One model."""
    return msgspec.json.encode(_shape(model, dialect))


def _shape(model: ServedModel, dialect: Dialect) -> dict[str, str | int | tuple[str, ...]]:
    if dialect is Dialect.GEMINI:
        name = f"models/{model.id}"
        return {"name": name, "baseModelId": model.id, "displayName": model.id, "supportedGenerationMethods": _METHODS}
    if dialect is Dialect.OPENAI:
        return {"id": model.id, "object": "model", "created": model.created, "owned_by": model.owned_by}
    created = datetime.fromtimestamp(model.created, UTC).isoformat().replace("+00:00", "Z")
    return {"type": "model", "id": model.id, "display_name": model.id, "created_at": created}

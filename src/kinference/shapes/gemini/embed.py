"""Embeddings as Gemini has them: one request for each text, all in one body."""

from decimal import Decimal
from typing import Any

from kinference.shapes.answers import Answer
from kinference.shapes.ir import Json, Request


def emit_embeddings(request: Request) -> Json:
    """The body of a batch."""
    size = {} if request.dimensions is None else {"outputDimensionality": request.dimensions}
    model = f"models/{request.model}"
    return {"requests": [{"model": model, **size, "content": {"parts": [{"text": text}]}} for text in request.inputs]}


def parse_embeddings(embeddings: list[Any]) -> Answer:
    """The vectors, in the order of the texts; one that is none is empty."""
    return Answer(vectors=tuple(_vector(one) for one in embeddings))


def _vector(embedding: object) -> tuple[int | Decimal, ...]:
    values = embedding.get("values") if isinstance(embedding, dict) else None
    numbers = values if isinstance(values, list) else []
    return tuple(number for number in numbers if isinstance(number, int | Decimal))

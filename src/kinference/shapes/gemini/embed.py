"""Embeddings as Gemini has them, one request for each text, all in one body, and as Vertex AI answers for them."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from kinference.shapes.answers import Answer, Counts
from kinference.shapes.ir import Json, Request
from kinference.shapes.usage import TOKENS_MAX


def emit_embeddings(request: Request) -> Json:
    """The body of a batch."""
    size = {} if request.dimensions is None else {"outputDimensionality": request.dimensions}
    model = f"models/{request.model}"
    return {"requests": [{"model": model, **size, "content": {"parts": [{"text": text}]}} for text in request.inputs]}


def parse_embeddings(embeddings: list[Any]) -> Answer:
    """The vectors, in the order of the texts; one that is none is empty."""
    return Answer(vectors=tuple(numbers_in(_member(one, "values")) for one in embeddings))


def parse_predictions(predictions: list[Any]) -> Answer:
    """The same of Vertex AI, which says for each text how many tokens it had."""
    found = [_member(one, "embeddings") for one in predictions]
    counts = [_member(_member(one, "statistics"), "token_count") for one in found]
    known = [int(count) for count in counts if isinstance(count, int | Decimal) and 0 <= count <= TOKENS_MAX]
    return Answer(
        vectors=tuple(numbers_in(_member(one, "values")) for one in found),
        counts=Counts(prompt=sum(known)) if known else Counts(),
    )


def numbers_in(values: object) -> tuple[int | Decimal, ...]:
    """The numbers of a vector."""
    numbers: Iterable[Any] = values if isinstance(values, list) else ()
    return tuple(number for number in numbers if isinstance(number, int | Decimal))


def _member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None

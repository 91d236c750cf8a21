"""Vectors written as an Embeddings answer, as numbers or in base64."""

import base64
import struct
from typing import Any, Final

from kinference.shapes.answers import Answer, Frame
from kinference.shapes.ir import Json

ECHOED: Final = ("encoding_format",)
"""Says how the client reads vectors: the official one asks for base64 unless told otherwise."""

_FLOAT_MAX: Final = 3.4e38


def emit_answer(answer: Answer, frame: Frame) -> Json:
    """The body."""
    in_base64 = frame.echo.get("encoding_format") == "base64"
    prompt = answer.counts.prompt or 0
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": at, "embedding": _base64(vector) if in_base64 else list(vector)}
            for at, vector in enumerate(answer.vectors)
        ],
        "model": answer.model,
        "usage": {"prompt_tokens": prompt, "total_tokens": prompt},
    }


def _base64(vector: tuple[Any, ...]) -> str:
    """As 32-bit floats, little end first."""
    numbers = (min(max(float(number), -_FLOAT_MAX), _FLOAT_MAX) for number in vector)
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *numbers)).decode()

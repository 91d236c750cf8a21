from decimal import Decimal

from kinference.shapes.gemini.embed import emit_embeddings, parse_embeddings
from kinference.shapes.ir import Request


def test_a_text_without_a_size() -> None:
    assert emit_embeddings(Request(model="m", inputs=("a",))) == {
        "requests": [{"model": "models/m", "content": {"parts": [{"text": "a"}]}}]
    }


def test_a_vector_that_is_none_is_empty() -> None:
    found = parse_embeddings([{"values": [Decimal("0.5"), 1, "x"]}, 7, {"values": 7}])
    assert found.vectors == ((Decimal("0.5"), 1), (), ())

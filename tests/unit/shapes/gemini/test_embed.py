from decimal import Decimal

from kinference.shapes.answers import Counts
from kinference.shapes.gemini.embed import emit_embeddings, parse_embeddings, parse_predictions
from kinference.shapes.ir import Request


def test_a_text_without_a_size() -> None:
    assert emit_embeddings(Request(model="m", inputs=("a",))) == {
        "requests": [{"model": "models/m", "content": {"parts": [{"text": "a"}]}}]
    }


def test_a_vector_that_is_none_is_empty() -> None:
    found = parse_embeddings([{"values": [Decimal("0.5"), 1, "x"]}, 7, {"values": 7}])
    assert found.vectors == ((Decimal("0.5"), 1), (), ())


def test_vertex_says_of_each_text_what_it_took() -> None:
    first = {"embeddings": {"values": [1, Decimal("0.5")], "statistics": {"token_count": 3}}}
    second = {"embeddings": {"values": [2], "statistics": {"token_count": Decimal("4.0")}}}
    found = parse_predictions([first, second, {"embeddings": {"values": [3]}}, 7])
    assert found.vectors == ((1, Decimal("0.5")), (2,), (3,), ())
    assert found.counts == Counts(prompt=7)
    assert parse_predictions([{"embeddings": {"values": [3]}}]).counts == Counts()

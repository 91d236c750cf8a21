from typing import Any

import pytest

from kinference.shapes.lost import Untranslatable
from tests.unit.shapes.conversions import CONVERSE, EMBEDDINGS, answered, sent, warnings

TITAN, COHERE = "amazon.titan-embed-text-v2:0", "us.cohere.embed-v4:0"


def asked(model: str, **members: Any) -> Any:
    return sent({"model": "m", **members}, EMBEDDINGS, CONVERSE, model)


def test_titan_is_asked_for_one_text() -> None:
    assert asked(TITAN, input="a") == asked(TITAN, input=["a"]) == {"inputText": "a"}
    assert asked(TITAN, input="a", dimensions=256) == {"inputText": "a", "dimensions": 256}
    with pytest.raises(Untranslatable, match="one text at a time"):
        asked(TITAN, input=["a", "b"])


def test_cohere_is_asked_for_several_and_told_what_for() -> None:
    assert asked(COHERE, input=["a", "b"], dimensions=256) == {
        "texts": ["a", "b"],
        "input_type": "search_document",
        "output_dimension": 256,
    }
    assert warnings({"model": "m", "input": "a"}, EMBEDDINGS, CONVERSE, COHERE) == "assumed=input_type:search_document"
    assert len(asked(COHERE, input=["a"] * 96)["texts"]) == 96
    with pytest.raises(Untranslatable, match="96"):
        asked(COHERE, input=["a"] * 97)


def test_of_others_nothing_is_guessed() -> None:
    with pytest.raises(Untranslatable, match="model"):
        asked("maker.embeds", input="a")


@pytest.mark.parametrize(
    ("answer", "vectors", "tokens"),
    [
        ({"embedding": [0.5, 1], "inputTextTokenCount": 3}, [[0.5, 1]], 3),
        ({"embeddings": [[0.5], [1]], "response_type": "embeddings_floats"}, [[0.5], [1]], 0),
        ({"embeddings": {"float": [[0.5], [1]], "int8": [[1], [2]]}}, [[0.5], [1]], 0),
    ],
)
def test_vectors_come_back_in_the_order_of_the_texts(answer: Any, vectors: Any, tokens: int) -> None:
    body = answered(answer, EMBEDDINGS, CONVERSE)
    assert [one["embedding"] for one in body["data"]] == vectors
    assert [one["index"] for one in body["data"]] == list(range(len(vectors)))
    assert body["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}

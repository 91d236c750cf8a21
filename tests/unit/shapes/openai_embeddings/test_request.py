import pytest
from openai.types.embedding_create_params import EmbeddingCreateParams

from kinference.shapes.lost import Untranslatable
from kinference.shapes.openai_embeddings.request import FIELDS, parse_request
from kinference.shapes.scan import BadBody
from tests.unit.shapes.conversions import CHAT, EMBEDDINGS, GEMINI, planned, sent
from tests.unit.shapes.sdk import unknown


def test_no_field_of_the_sdk_is_unknown() -> None:
    assert unknown(FIELDS, {"": [EmbeddingCreateParams]}) == []


@pytest.mark.parametrize(("given", "inputs"), [("a", ("a",)), (["a", "b"], ("a", "b"))])
def test_texts_to_embed(given: object, inputs: tuple[str, ...]) -> None:
    request = parse_request({"input": given, "dimensions": 3})
    assert (request.inputs, request.dimensions, request.extras) == (inputs, 3, ())


def test_gemini_gets_one_request_a_text() -> None:
    body = {"model": "m", "input": ["a", "b"], "dimensions": 3, "encoding_format": "base64", "user": "u"}
    one = {"model": "models/m", "outputDimensionality": 3}
    assert sent(body, EMBEDDINGS, GEMINI) == {
        "requests": [{**one, "content": {"parts": [{"text": text}]}} for text in ("a", "b")]
    }


def test_who_converses_does_not_embed() -> None:
    with pytest.raises(Untranslatable, match="input"):
        planned({"model": "m", "input": "a"}, EMBEDDINGS, CHAT)


@pytest.mark.parametrize("given", [None, [], 7, {}, [1, 2], [[1]]])
def test_what_is_no_text_is_told(given: object) -> None:
    with pytest.raises(BadBody, match="input"):
        parse_request({"input": given})

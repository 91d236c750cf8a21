import base64
import struct

from openai.types import CreateEmbeddingResponse

from tests.unit.shapes.conversions import EMBEDDINGS, GEMINI, answered

VECTORS = {"embeddings": [{"values": [0.5, -1, 2.0]}, {"values": [1.5]}]}


def test_the_sdk_takes_numbers() -> None:
    body = CreateEmbeddingResponse.model_validate(answered(VECTORS, EMBEDDINGS, GEMINI))
    assert [(one.index, one.embedding) for one in body.data] == [(0, [0.5, -1.0, 2.0]), (1, [1.5])]
    assert (body.model, body.usage.total_tokens) == ("m", 0)


def test_who_asks_for_base64_gets_it() -> None:
    body = answered(VECTORS, EMBEDDINGS, GEMINI, encoding_format="base64")
    assert struct.unpack("<3f", base64.b64decode(body["data"][0]["embedding"])) == (0.5, -1.0, 2.0)
    beyond = answered({"embeddings": [{"values": [1e300]}]}, EMBEDDINGS, GEMINI, encoding_format="base64")
    assert struct.unpack("<f", base64.b64decode(beyond["data"][0]["embedding"]))[0] > 1e38

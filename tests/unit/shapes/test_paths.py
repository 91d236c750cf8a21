from urllib.parse import unquote

import pytest

from kinference.shapes.paths import filled, path_to, segment
from kinference.shapes.scan import BadBody
from kinference.vocabulary import Api

CHAT, MESSAGES = Api.OPENAI_CHAT, Api.ANTHROPIC_MESSAGES


@pytest.mark.parametrize(
    ("destination", "client", "streaming", "path"),
    [
        (CHAT, CHAT, False, ""),
        (MESSAGES, CHAT, True, "/v1/messages"),
        (CHAT, MESSAGES, False, "/v1/chat/completions"),
        (Api.OPENAI_RESPONSES, CHAT, False, "/v1/responses"),
        (Api.GEMINI, CHAT, False, "/v1beta/models/m:generateContent"),
        (Api.GEMINI, Api.OPENAI_EMBEDDINGS, False, "/v1beta/models/m:batchEmbedContents"),
        (Api.VERTEX_GEMINI, Api.OPENAI_EMBEDDINGS, False, "/publishers/google/models/m:predict"),
        (Api.BEDROCK_CONVERSE, Api.OPENAI_EMBEDDINGS, False, "/model/m/invoke"),
        (Api.OPENAI_EMBEDDINGS, Api.OPENAI_EMBEDDINGS, False, ""),
        (Api.GEMINI, Api.GEMINI, True, "/v1beta/models/m:streamGenerateContent?alt=sse"),
        (Api.BEDROCK_CONVERSE, CHAT, True, "/model/m/converse-stream"),
        (Api.AZURE_OPENAI, CHAT, True, "/openai/deployments/m/chat/completions?api-version=2024-10-21"),
        (Api.AZURE_OPENAI, Api.OPENAI_EMBEDDINGS, False, "/openai/deployments/m/embeddings?api-version=2024-10-21"),
        (Api.AZURE_OPENAI, MESSAGES, False, "/openai/deployments/m/chat/completions?api-version=2024-10-21"),
        (Api.AZURE_OPENAI, Api.OPENAI_RESPONSES, False, "/openai/v1/responses"),
        (Api.VERTEX_ANTHROPIC, MESSAGES, True, "/publishers/anthropic/models/m:streamRawPredict"),
        (Api.VERTEX_GEMINI, CHAT, False, "/publishers/google/models/m:generateContent"),
        (Api.VERTEX_OPENAI, CHAT, False, "/endpoints/openapi/chat/completions"),
    ],
)
def test_where_each_api_is_served(destination: Api, client: Api, streaming: bool, path: str) -> None:
    assert path_to(destination, client, "m", streaming=streaming) == path


@pytest.mark.parametrize("model", ["a/b", "arn:aws:bedrock:us-east-1::x/y", "a b?c=d#e", "..x", "é", "a%2Fb"])
def test_a_model_is_one_segment(model: str) -> None:
    assert "/" not in segment(model)
    assert unquote(segment(model)) == model
    assert filled("/m/{model}/x", model) == f"/m/{segment(model)}/x"


@pytest.mark.parametrize("model", ["", ".", "..", "../../x", "a/../../b", "a//b", "a\nb", "a\x00", "/"])
def test_j5_a_model_that_leads_elsewhere_is_refused(model: str) -> None:
    with pytest.raises(BadBody, match="model"):
        segment(model)


def test_a_path_without_a_place_for_the_model_stays() -> None:
    assert filled("/v9/chat", "..") == "/v9/chat"

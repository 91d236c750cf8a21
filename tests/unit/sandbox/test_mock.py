import json

import pytest

from kinference.sandbox.mock import TEXT, mock_answer


@pytest.mark.parametrize(
    "protocol", ["openai_chat_completions", "openai_completions", "anthropic_messages", "openai_responses"]
)
def test_fact64_a_mock_answers_with_the_routes_model_and_a_fixed_text(protocol: str) -> None:
    answer = mock_answer(protocol, "my-model")
    assert json.loads(answer)["model"] == "my-model"
    assert TEXT.encode() in answer


def test_fact64_a_mock_lists_its_model_and_embeds() -> None:
    assert json.loads(mock_answer("model_discovery", "my-model"))["data"][0]["id"] == "my-model"
    assert json.loads(mock_answer("openai_embeddings", "my-model"))["data"][0]["embedding"]

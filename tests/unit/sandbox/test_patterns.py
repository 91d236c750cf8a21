import pytest

from kinference.sandbox.patterns import pattern_of


@pytest.mark.parametrize(
    ("method", "path", "protocol"),
    [
        ("POST", "/v1/chat/completions", "openai_chat_completions"),
        ("post", "/v1/chat/completions", "openai_chat_completions"),
        ("POST", "/v1/completions", "openai_completions"),
        ("POST", "/v1/responses", "openai_responses"),
        ("POST", "/v1/messages", "anthropic_messages"),
        ("POST", "/v1/messages/count_tokens", "anthropic_messages"),
        ("POST", "/v1/embeddings", "openai_embeddings"),
        ("GET", "/v1/models", "model_discovery"),
        ("GET", "/v1/models/", "model_discovery"),
        ("GET", "/v1/models/gpt-4.1", "model_discovery"),
        ("GET", "/v1/models/org/name", "model_discovery"),
        ("GET", "/v1/models/org%2Fname", "model_discovery"),
        ("GET", "/v1/models/ft:gpt-4o:org::id", "model_discovery"),
        ("GET", "/v1/models/a..b", "model_discovery"),
        ("POST", "/model/anthropic.claude/invoke", "aws_bedrock_invoke"),
    ],
)
def test_fact49_inference_is_known_by_method_and_path(method: str, path: str, protocol: str) -> None:
    found = pattern_of(method, path)
    assert found is not None
    assert found.protocol == protocol


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/chat/completions"),
        ("POST", "/v1/models"),
        ("POST", "/v1/chat/completions/"),
        ("POST", "/v1/audio/speech"),
        ("POST", "/api/chat"),
        ("POST", "/model//invoke"),
        ("POST", "/model/a/b/invoke"),
        ("POST", "/model/a/invoke-with-response-stream"),
        ("OPTIONS", "/v1/chat/completions"),
        ("GET", "/v1/models/../files"),
        ("GET", "/v1/models/%2e%2e/files"),
        ("GET", "/v1/models%2F..%2Ffiles"),
        ("GET", "/v1/models/%2e./files"),
        ("GET", "/v1/models/..%2ffiles"),
        ("GET", "/v1/models/a%2F%2e%2E"),
        ("GET", "/v1/models/..;/files"),
        ("GET", "/v1/models/..%3b/files"),
        ("GET", "/v1/models/%252e%252e/files"),
        ("GET", "/v1/models/..\\files"),
        ("GET", "/v1/models/..%5Cfiles"),
        ("GET", "/v1/models/x%00"),
        ("GET", "/v1/models/x%0d%0ay"),
        ("GET", "/v1/models/x%3Fy"),
        ("GET", "/v1/models/x%23y"),
        ("GET", "/v1/models/%ff"),
        ("GET", "/v1/models/%EF%BC%8E%EF%BC%8E"),
        ("POST", "/v1%2Fchat/completions"),
        ("GET", "/v1/models//x"),
        ("GET", "/v1/models/a b"),
        ("GET", "/"),
    ],
)
def test_fact46_fact49_everything_else_is_not(method: str, path: str) -> None:
    assert pattern_of(method, path) is None


def test_fact50_only_short_answers_come_whole() -> None:
    buffered = [("POST", "/v1/embeddings"), ("GET", "/v1/models"), ("POST", "/v1/chat/completions")]
    assert [found.is_buffered for each in buffered if (found := pattern_of(*each))] == [True, True, False]

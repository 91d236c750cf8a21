import pytest

from kinference.control.urls import join_url, route_url

CHAT = "/v1/chat/completions"


@pytest.mark.parametrize(
    ("base", "joined"),
    [
        ("https://api.openai.com", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1/", "https://api.openai.com/v1/chat/completions"),
        ("https://api.groq.com/openai/v1", "https://api.groq.com/openai/v1/chat/completions"),
        ("https://api.deepinfra.com/v1/openai", "https://api.deepinfra.com/v1/openai/chat/completions"),
        ("https://h/api/v1/openai", "https://h/api/v1/openai/v1/chat/completions"),
        ("https://v1/", "https://v1/v1/chat/completions"),
        ("mock://anything", "mock://anything/v1/chat/completions"),
    ],
)
def test_fact57_a_base_url_works_with_and_without_its_version(base: str, joined: str) -> None:
    assert join_url(base, CHAT) == joined


@pytest.mark.parametrize(
    ("model", "override", "joined"),
    [
        ("claude", ":rawPredict", "https://h/models/claude:rawPredict"),
        (None, "/chat/completions", "https://h/models/chat/completions"),
        (None, "chat", "https://h/models/chat"),
        ("claude", None, "https://h/models/claude/v1/chat/completions"),
        (None, None, "https://h/models/v1/chat/completions"),
    ],
)
def test_a_route_may_have_its_model_in_the_path_or_a_path_of_its_own(
    model: str | None, override: str | None, joined: str
) -> None:
    assert route_url("https://h/models/", CHAT, model, override) == joined

import pytest

from kinference.control.errors import Unmet
from kinference.control.vertex import vertex_route
from kinference.errors import InvalidArgument

PROJECT = {"VERTEX_AI_PROJECT": "my-project"}


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("", "us-central1-aiplatform.googleapis.com"),
        ("europe-west4", "europe-west4-aiplatform.googleapis.com"),
        ("global", "aiplatform.googleapis.com"),
        ("us", "aiplatform.us.rep.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
    ],
)
def test_fact33_the_region_makes_the_host(region: str, host: str) -> None:
    route = vertex_route({**PROJECT, "VERTEX_AI_REGION": region}, "", "claude-sonnet")
    where = region or "us-central1"
    assert route.base_url == f"https://{host}/v1/projects/my-project/locations/{where}/publishers/anthropic/models"
    assert (route.protocol, route.model_in_path, route.path_override) == ("anthropic_messages", True, ":rawPredict")


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("gemini-2", "google/gemini-2"),
        ("llama-4", "meta/llama-4"),
        ("codestral-2", "mistralai/codestral-2"),
        ("jamba-1", "ai21/jamba-1"),
        ("deepseek-r1", "deepseek/deepseek-r1"),
        ("unheard-of", "unheard-of"),
    ],
)
def test_fact33_other_models_are_named_with_their_publisher(model: str, told: str) -> None:
    route = vertex_route(PROJECT, "", model)
    assert (route.model_id, route.protocol, route.path_override) == (
        told,
        "openai_chat_completions",
        "/chat/completions",
    )
    assert route.base_url.endswith("/v1beta1/projects/my-project/locations/us-central1/endpoints/openapi")
    assert not route.model_in_path


def test_fact33_a_publisher_in_the_record_wins() -> None:
    assert vertex_route({**PROJECT, "VERTEX_AI_PUBLISHER": "Anthropic"}, "", "gemini-2").model_in_path
    assert vertex_route({**PROJECT, "VERTEX_AI_PUBLISHER": "acme"}, "", "claude-1").model_id == "acme/claude-1"


@pytest.mark.parametrize("project", ["short", "Upper-case", "1starts-wrong", "ends-wrong-", "x" * 31, "a/../b/c"])
def test_fact34_a_bad_project_is_refused(project: str) -> None:
    with pytest.raises(InvalidArgument, match="project"):
        vertex_route({"VERTEX_AI_PROJECT": project}, "", "claude-1")


def test_fact34_a_missing_project_is_a_precondition() -> None:
    with pytest.raises(Unmet, match="names no project"):
        vertex_route({}, "", "claude-1")


@pytest.mark.parametrize("region", ["US", "us central1", "evil.com/", "us-central1.evil"])
def test_fact34_a_bad_region_is_refused(region: str) -> None:
    with pytest.raises(InvalidArgument, match="region"):
        vertex_route({**PROJECT, "VERTEX_AI_REGION": region}, "", "claude-1")


def test_an_official_base_url_may_be_set_for_models_that_are_not_anthropics() -> None:
    base = "https://us-central1-aiplatform.googleapis.com/v1beta1/x"
    assert vertex_route(PROJECT, base, "gemini-2").base_url == base
    with pytest.raises(InvalidArgument, match="Anthropic"):
        vertex_route(PROJECT, base, "claude-1")


@pytest.mark.parametrize(
    "base",
    [
        "http://us-central1-aiplatform.googleapis.com",
        "https://evil.com",
        "https://us-central1-aiplatform.googleapis.com.evil.com",
        "https://127.0.0.1",
        "https://[::1]",
        "https://user@aiplatform.googleapis.com",
        "https://aiplatform.googleapis.com/?x=1",
        "https://aiplatform.googleapis.com/#x",
        "https://aiplatform.googleapis.com:8443",
        "https://aiplatform.googleapis.com:99999",
    ],
)
def test_fact34_any_other_base_url_is_refused(base: str) -> None:
    with pytest.raises(InvalidArgument, match=r"aiplatform\.googleapis\.com host"):
        vertex_route(PROJECT, base, "gemini-2")

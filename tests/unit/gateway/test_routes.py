import pytest

from kinference.gateway.routes import ROUTES, Dialect, Duty, dialect_of, find, missed
from kinference.vocabulary import Api


@pytest.mark.parametrize(
    ("path", "api"),
    [
        ("/v1/chat/completions", Api.OPENAI_CHAT),
        ("/v1/completions", Api.OPENAI_COMPLETIONS),
        ("/v1/responses", Api.OPENAI_RESPONSES),
        ("/v1/embeddings", Api.OPENAI_EMBEDDINGS),
        ("/v1/messages", Api.ANTHROPIC_MESSAGES),
        ("/v1/messages/count_tokens", Api.ANTHROPIC_MESSAGES),
    ],
)
def test_each_api_has_its_path_and_takes_posts(path: str, api: Api) -> None:
    route = find(path)
    assert route is not None
    assert (route.duty, route.api, route.allow) == (Duty.INFER, api, b"POST")


def test_every_api_is_served_somewhere() -> None:
    served = {route.api for route in ROUTES.values()} | {Api.GEMINI}  # whose paths name the model
    assert served - {None} == {api for api in Api if api.at_engines is api} | {Api.GEMINI}


@pytest.mark.parametrize("version", ["v1", "v1beta"])
@pytest.mark.parametrize("action", ["generateContent", "streamGenerateContent"])
def test_geminis_paths_name_the_model(version: str, action: str) -> None:
    path = f"/{version}/models/gemini-2.5-pro:{action}"
    route = find(path)
    assert route is not None
    assert dialect_of(path, anthropic_version=False) is Dialect.GEMINI
    assert (route.api, route.methods) == (Api.GEMINI, ("POST",))
    assert route.runs_prompt


def test_what_asks_for_a_count_runs_no_prompt() -> None:
    for path in ("/v1beta/models/m:countTokens", "/v1/messages/count_tokens", "/v1/responses/input_tokens"):
        route = find(path)
        assert route is not None
        assert not route.runs_prompt


@pytest.mark.parametrize("path", ["/v1/models/m", "/v1/models/org/name", "/v1/models/a%2Fb", "/v1beta/models/m"])
def test_a_models_id_may_contain_slashes(path: str) -> None:
    route = find(path)
    assert route is not None
    assert route.duty is Duty.SHOW_MODEL


@pytest.mark.parametrize(
    "path", ["/v1/models/", "/v1beta/models/", "/v2/chat/completions", "/v1/chat/completions/", "//", ""]
)
def test_other_paths_lead_nowhere(path: str) -> None:
    assert find(path) is None


@pytest.mark.parametrize(
    ("path", "dialect"),
    [("/v1/models", Dialect.GEMINI), ("/v1/models/m", Dialect.GEMINI), ("/v1/chat/completions", Dialect.OPENAI)],
)
def test_the_key_of_a_google_client_tells_whose_list_of_models_it_reads(path: str, dialect: Dialect) -> None:
    assert dialect_of(path, anthropic_version=False, google_key=True) is dialect


def test_the_head_of_the_root_and_health_are_served() -> None:
    root, health = find("/"), find("/health")
    assert root is not None
    assert health is not None
    assert root.methods == ("GET", "HEAD")
    assert health.allow == b"GET, HEAD"


def test_counting_tokens_runs_no_prompt() -> None:
    counting = find("/v1/messages/count_tokens")
    assert counting is not None
    assert not counting.runs_prompt


@pytest.mark.parametrize(
    ("path", "version", "dialect"),
    [
        ("/v1/messages", False, Dialect.ANTHROPIC),
        ("/v1/messages/batches", False, Dialect.ANTHROPIC),
        ("/v1/models", True, Dialect.ANTHROPIC),
        ("/v1/models", False, Dialect.OPENAI),
        ("/nowhere", False, Dialect.OPENAI),
    ],
)
def test_the_dialect_follows_the_path_and_then_the_client(path: str, dialect: Dialect, *, version: bool) -> None:
    assert dialect_of(path, anthropic_version=version) is dialect


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/chat/completions", "/v1/chat/completions"),
        ("/models", "/v1/models"),
        ("/v1/v1/messages", "/v1/messages"),
        ("/v2/messages", ""),
        ("/v1/nowhere", ""),
        ("", ""),
    ],
)
def test_a_version_too_few_or_too_many_leads_to_the_path_that_was_meant(path: str, meant: str) -> None:
    assert missed(path) == meant

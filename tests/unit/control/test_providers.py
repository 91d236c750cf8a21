import pytest

from kinference.control.catalogue import Provider
from kinference.control.errors import StoreFailed, Unmet
from kinference.control.provider_types import Auth
from kinference.control.providers import resolve, resolve_aws
from kinference.control.store.sealing import Sealed
from kinference.errors import InvalidArgument
from kinference.wire.sigv4 import AwsKeys


def reveal(stored: Sealed | str, place: str) -> str:
    """References stand for secrets here: `${X}` is `X`, one that begins with ! is broken."""
    assert isinstance(stored, str)
    if stored.startswith("!"):
        raise Unmet(f"{place} is not there")
    return stored


def record(kind: str = "openai", credentials: dict[str, str] | None = None, **config: str) -> Provider:
    given = {"OPENAI_API_KEY": "sk-1"} if credentials is None else credentials
    return Provider("p", kind, dict(given), config)


@pytest.mark.parametrize(
    ("kind", "key", "base_url", "told"),
    [
        ("openai", "OPENAI_API_KEY", "https://api.openai.com/v1", "openai"),
        ("anthropic", "ANTHROPIC_API_KEY", "https://api.anthropic.com/v1", "anthropic"),
        ("nvidia", "NVIDIA_API_KEY", "https://integrate.api.nvidia.com/v1", "nvidia"),
        ("deepinfra", "DEEPINFRA_API_KEY", "https://api.deepinfra.com/v1/openai", "deepinfra"),
        ("gemini", "GOOGLE_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai", "openai"),
    ],
)
def test_fact25_a_type_has_its_default_base_url(kind: str, key: str, base_url: str, told: str) -> None:
    resolved = resolve(record(kind, {key: "sk-1"}), "m", reveal)
    assert (resolved.base_url, resolved.api_key, resolved.provider_type) == (base_url, "sk-1", told)
    assert "sk-1" not in repr(resolved)


def test_fact25_the_records_own_base_url_wins_trimmed() -> None:
    assert resolve(record(OPENAI_BASE_URL=" http://h/v1 "), "m", reveal).base_url == "http://h/v1"
    assert resolve(record(OPENAI_BASE_URL="  "), "m", reveal).base_url == "https://api.openai.com/v1"
    assert resolve(record(base_url="http://h"), "m", reveal).base_url == "https://api.openai.com/v1"


def test_anthropic_is_shown_its_credential_its_own_way() -> None:
    resolved = resolve(record("anthropic"), "m", reveal)
    assert resolved.auth is Auth.API_KEY_HEADER
    assert resolved.default_headers == (("anthropic-version", "2023-06-01"),)


@pytest.mark.parametrize(
    ("credentials", "chosen"),
    [
        ({"A": "sk-a", "OPENAI_API_KEY": "sk-1"}, "sk-1"),
        ({"B": "sk-b", "A": "sk-a"}, "sk-a"),
        ({"OPENAI_API_KEY": " ", "B": "sk-b", "A": ""}, "sk-b"),
        ({"OPENAI_API_KEY": "!", "A": "sk-a"}, "sk-a"),
        ({"A": " sk-a "}, " sk-a "),
    ],
)
def test_fact31_the_preferred_credential_else_the_first_in_the_alphabet(
    credentials: dict[str, str], chosen: str
) -> None:
    assert resolve(record(credentials=credentials), "m", reveal).api_key == chosen


@pytest.mark.parametrize("credentials", [{}, {"OPENAI_API_KEY": " "}])
def test_fact8_without_a_credential_there_is_nothing_to_resolve(credentials: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match="no usable API key credential"):
        resolve(record(credentials=credentials), "m", reveal)


def test_a_credential_that_cannot_be_read_is_told_so() -> None:
    with pytest.raises(Unmet, match="provider p credential A is not there"):
        resolve(record(credentials={"A": "!"}), "m", reveal)


@pytest.mark.parametrize("kind", ["openai", "aws-bedrock"])
@pytest.mark.parametrize("secret", ["sk-1\nx-admin: yes", "sk\x00-1", "sk-\u00e9", "sk-1\x7f"])
def test_a_credential_that_no_header_may_hold_is_refused_unsaid(kind: str, secret: str) -> None:
    asked = record(kind, {"OPENAI_API_KEY": secret, "AWS_BEARER_TOKEN_BEDROCK": secret}, AWS_REGION="us-east-1")
    with pytest.raises(InvalidArgument, match="holds characters that no HTTP header may") as refused:
        resolve_aws(asked, reveal) if kind == "aws-bedrock" else resolve(asked, "m", reveal)
    assert "sk" not in str(refused.value).replace("OPENAI_API_KEY", "")


def test_fact7_a_type_that_cannot_serve_is_refused_with_those_that_can() -> None:
    with pytest.raises(InvalidArgument, match=r"unsupported type 'claude' .*supported: openai, anthropic, nvidia"):
        resolve(record("claude"), "m", reveal)


@pytest.mark.parametrize("kind", ["aws-bedrock", "azure-openai", "openai-compatible"])
def test_fact35_types_without_a_default_need_their_base_url(kind: str) -> None:
    with pytest.raises(InvalidArgument, match="empty base_url"):
        resolve(record(kind), "m", reveal)


def test_fact35_bedrock_has_no_credential_of_its_own() -> None:
    resolved = resolve(record("aws-bedrock", BEDROCK_BASE_URL="http://bridge"), "m", reveal)
    assert (resolved.base_url, resolved.api_key, resolved.auth) == ("http://bridge", "", Auth.NONE)


@pytest.mark.parametrize("model", ["", " m", "m ", "a/b", "a\\b", "a?b", "a#b", "a%b", "a..b", "a\nb"])
def test_fact36_unsafe_bedrock_models_are_refused(model: str) -> None:
    with pytest.raises(InvalidArgument, match="model_id"):
        resolve(record("aws-bedrock", BEDROCK_BASE_URL="http://bridge"), model, reveal)


def test_an_openai_compatible_endpoint_needs_no_credential() -> None:
    resolved = resolve(record("openai-compatible", {}, OPENAI_BASE_URL="http://localhost:8000/v1"), "m", reveal)
    assert (resolved.api_key, resolved.provider_type) == ("", "openai")


def test_fact32_a_blank_credential_of_vertex_gives_way_to_its_next_name_and_to_no_other() -> None:
    config = {"VERTEX_AI_PROJECT": "my-project"}
    named = {"GOOGLE_VERTEX_AI_TOKEN": " ", "VERTEX_AI_TOKEN": "t", "OTHER": "o"}
    resolved = resolve(Provider("p", "vertex", dict(named), config), "claude-x", reveal)
    assert (resolved.api_key, resolved.provider_type) == ("t", "google-vertex-ai")
    assert (resolved.model_in_path, resolved.path_override) == (True, ":rawPredict")
    with pytest.raises(InvalidArgument, match="no usable API key"):
        resolve(Provider("p", "vertex", {"OTHER": "o"}, config), "claude-x", reveal)


def test_a_broken_seal_is_not_taken_for_a_missing_credential() -> None:
    def broken(_stored: Sealed | str, place: str) -> str:
        raise StoreFailed(place)

    with pytest.raises(StoreFailed):
        resolve(record(), "m", broken)


AWS = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "hidden"}


def test_a_record_of_bedrock_signs_for_its_region() -> None:
    found = resolve_aws(record("aws-bedrock", {**AWS, "AWS_SESSION_TOKEN": "while"}, AWS_REGION=" eu-west-1 "), reveal)
    assert found.base_url == "https://bedrock-runtime.eu-west-1.amazonaws.com"
    assert found.keys == AwsKeys("AKID", "hidden", "while", "eu-west-1")
    assert "hidden" not in repr(found)
    own = "https://bedrock-runtime.us-east-1.amazonaws.com"
    found = resolve_aws(record("aws-bedrock", AWS, BEDROCK_BASE_URL=own), reveal)
    assert (found.base_url, found.keys) == (own, AwsKeys("AKID", "hidden"))


def test_a_record_of_bedrock_may_hold_a_bearer_token() -> None:
    found = resolve_aws(record("aws-bedrock", {"AWS_BEARER_TOKEN_BEDROCK": "b"}, AWS_REGION="us-east-1"), reveal)
    assert (found.bearer, found.keys) == ("b", None)


@pytest.mark.parametrize(
    ("kind", "credentials", "config", "told"),
    [
        ("openai", AWS, {}, "needs aws-bedrock"),
        ("aws-bedrock", AWS, {}, "names no place"),
        ("aws-bedrock", AWS, {"AWS_REGION": "a/b"}, "region that is none"),
        ("aws-bedrock", {}, {"AWS_REGION": "us-east-1"}, "no usable credential"),
        ("aws-bedrock", AWS, {"BEDROCK_BASE_URL": "https://proxy.test"}, "names no region"),
    ],
)
def test_what_a_record_of_bedrock_lacks_is_told(
    kind: str, credentials: dict[str, str], config: dict[str, str], told: str
) -> None:
    with pytest.raises(InvalidArgument, match=told):
        resolve_aws(record(kind, credentials, **config), reveal)

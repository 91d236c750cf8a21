import pytest

from kinference.gateway.backends import BackendRoute, Directory, EndpointRoute, Inbound, ServedModel, join_path, leg_to
from kinference.ids import Address, ObjectRef
from kinference.ports import Headers, LocalTarget, ProviderTarget
from kinference.vocabulary import Api

CLOUD = ObjectRef("default", "cloud")
ENGINE = Address("10.0.0.1:8000")


def inbound(
    path: str = "/v1/chat/completions", query: str = "", headers: Headers = (), api: Api = Api.OPENAI_CHAT
) -> Inbound:
    return Inbound(path, query, headers, "req_1", api)


def knowing(base_url: str = "https://cloud.test/v1", api: Api = Api.OPENAI_CHAT, key: str = "sk-ours") -> Directory:
    backend = BackendRoute(CLOUD, base_url, key, api)
    return Directory({ENGINE: EndpointRoute("http://10.0.0.1:8000", "/engine")}.get, {CLOUD: backend}.get, lambda: ())


@pytest.mark.parametrize(
    ("prefix", "path", "joined"),
    [
        ("", "/v1/messages", "/v1/messages"),
        ("/", "/v1/messages", "/v1/messages"),
        ("/v1", "/v1/messages", "/v1/messages"),
        ("/v1/", "/v1/messages", "/v1/messages"),
        ("/v1", "/messages", "/v1/messages"),
        ("/api/paas/v4", "/v1/chat/completions", "/api/paas/v4/chat/completions"),
        ("/v1beta", "/v1/chat/completions", "/v1beta/chat/completions"),
        ("/openai", "/v1/chat/completions", "/openai/v1/chat/completions"),
        ("/a/", "//v1/x", "/a/v1/x"),
    ],
)
def test_i12_a_path_follows_its_base_with_one_slash_and_one_version(prefix: str, path: str, joined: str) -> None:
    assert join_path(prefix, path) == joined


def test_i13_an_engine_is_reached_under_its_prefix_with_the_clients_path_and_query() -> None:
    leg = leg_to(LocalTarget(ENGINE), inbound("/v1/messages", "page=a%2Bb%2Fc%3D%26d&beta=a+b"), knowing())
    assert leg is not None
    assert (leg.name, leg.origin, leg.target) == (
        ENGINE,
        "http://10.0.0.1:8000",
        "/engine/v1/messages?page=a%2Bb%2Fc%3D%26d&beta=a+b",
    )
    assert not leg.is_provider


def test_i9_a_provider_sees_our_key_once_and_never_the_clients() -> None:
    client = ((b"authorization", b"Bearer tenant"), (b"x-api-key", b"tenant"))
    leg = leg_to(ProviderTarget(CLOUD), inbound(headers=client), knowing())
    assert leg is not None
    assert (leg.name, leg.origin, leg.target) == ("default/cloud", "https://cloud.test", "/v1/chat/completions")
    assert [value for name, value in leg.headers if name in (b"authorization", b"x-api-key")] == [b"Bearer sk-ours"]
    assert leg.is_provider


@pytest.mark.parametrize(
    ("sent", "version"), [((), b"2023-06-01"), (((b"anthropic-version", b"2026-10-21"),), b"2026-10-21")]
)
def test_anthropic_gets_its_own_credential_field_and_one_version(sent: Headers, version: bytes) -> None:
    leg = leg_to(ProviderTarget(CLOUD), inbound("/v1/messages", headers=sent), knowing(api=Api.ANTHROPIC_MESSAGES))
    assert leg is not None
    assert [value for name, value in leg.headers if name == b"x-api-key"] == [b"sk-ours"]
    assert [value for name, value in leg.headers if name == b"anthropic-version"] == [version]
    assert not [name for name, _ in leg.headers if name == b"authorization"]


def test_betas_go_to_anthropic_alone_and_not_to_vertex() -> None:
    sent = ((b"anthropic-beta", b"context-management-2025-06-27"), (b"anthropic-version", b"2023-06-01"))
    for api, passes in ((Api.ANTHROPIC_MESSAGES, True), (Api.VERTEX_ANTHROPIC, False), (Api.OPENAI_CHAT, False)):
        leg = leg_to(ProviderTarget(CLOUD), inbound("/v1/messages", headers=sent), knowing(api=api))
        assert leg is not None
        assert (b"anthropic-beta" in dict(leg.headers)) is passes


def test_a_providers_path_replaces_the_clients_with_its_query() -> None:
    leg = leg_to(ProviderTarget(CLOUD, "/chat?api-version=1"), inbound(query="client=1"), knowing())
    assert leg is not None
    assert leg.target == "/v1/chat?api-version=1"


@pytest.mark.parametrize("path", ["/../admin", "/v1/%2e%2e/admin", "/a/%2E./b"])
def test_j5_a_path_that_climbs_leads_nowhere(path: str) -> None:
    assert leg_to(ProviderTarget(CLOUD, path), inbound(), knowing()) is None


def test_a_provider_without_a_key_gets_no_empty_credential() -> None:
    leg = leg_to(ProviderTarget(CLOUD), inbound(), knowing(key=""))
    assert leg is not None
    assert leg.is_provider
    assert not [name for name, _ in leg.headers if name == b"authorization"]


def test_what_the_directory_does_not_know_has_no_leg() -> None:
    assert leg_to(LocalTarget(Address("10.9.9.9:1")), inbound(), knowing()) is None
    assert leg_to(ProviderTarget(ObjectRef("default", "other")), inbound(), knowing()) is None


def test_our_key_does_not_show_when_a_route_or_leg_is_printed() -> None:
    route = knowing().resolve(CLOUD)
    leg = leg_to(ProviderTarget(CLOUD), inbound(), knowing(api=Api.OPENAI_CHAT))
    assert leg is not None
    assert "sk-ours" not in repr(route)
    assert leg.secret == "sk-ours"
    assert "secret" not in repr(leg)


def test_a_model_is_known_by_name_and_by_glob() -> None:
    assert ServedModel("org/[m]").matches("org/[m]")
    assert ServedModel("gpt-*", is_glob=True).matches("gpt-4")
    assert not ServedModel("gpt-*").matches("gpt-4")


def test_everyone_may_use_every_model_unless_told_otherwise() -> None:
    assert knowing().allows("acme", "m")

from kinference.config.schema import Access, AccessToken, Backend, ClientKey, Config, Gateway, Limits
from kinference.config.values import Duration, Name, Secret, Size, Url
from kinference.ids import ObjectRef
from kinference.runtime.build import access_tokens, backend_routes, picker_limits
from kinference.vocabulary import Api, Role
from kinference.wire.access import Token

KEY = Secret("${OPENAI_API_KEY}", "sk-real")
OPENAI = Backend(
    Name("openai"), Api.OPENAI_CHAT, {"gpt": "gpt-5"}, base_url=Url("https", "api.example", 443, "/v1"), api_key=KEY
)


def test_every_configured_limit_reaches_the_picker() -> None:
    configured = Limits(Size(1), Size(2), Size(3), Duration(4), Duration(5), Duration(6), Duration(7))
    limits = picker_limits(Config(limits=configured))
    assert (limits.body_max_bytes, limits.buffer_max_bytes, limits.chunk_max_bytes) == (1, 2, 3)
    assert (limits.push_idle_timeout, limits.body_ttl, limits.ticket_ttl, limits.drain_timeout) == (4, 5, 6, 7)


def test_the_configured_tokens_are_who_may_call() -> None:
    token = AccessToken(Name("box"), Role.SANDBOX, Secret("${BOX}", "box-token"))
    assert access_tokens(Config(access=Access((token,)))) == [Token("box", Role.SANDBOX, "box-token")]


def test_a_backends_route_carries_its_credential_and_hides_it() -> None:
    routes = backend_routes(Config(backends=(OPENAI,)))
    route = routes[ObjectRef("default", "openai")]
    assert (route.base_url, route.api_key, route.api) == ("https://api.example:443/v1", "sk-real", Api.OPENAI_CHAT)
    assert "sk-real" not in repr(routes)


def test_a_backend_of_the_control_plane_has_no_route_of_its_own() -> None:
    elsewhere = Backend(Name("other"), Api.OPENAI_CHAT, {}, provider=Name("record"))
    assert backend_routes(Config(backends=(elsewhere,))) == {}


def test_no_configuration_prints_a_secret() -> None:
    config = Config(backends=(OPENAI,), gateway=Gateway(keys=(ClientKey(KEY, "acme"),)))
    assert "sk-real" not in repr(config)

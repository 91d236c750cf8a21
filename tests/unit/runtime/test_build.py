from pathlib import Path

import pytest

from kinference.config.destinations import Backend
from kinference.config.schema import (
    Access,
    AccessCertificate,
    AccessToken,
    ClientKey,
    Config,
    Gateway,
    Limits,
    SandboxTokens,
)
from kinference.config.values import Duration, Name, Secret, Size, Url
from kinference.errors import ConfigError
from kinference.ids import ObjectRef
from kinference.runtime.build import access_credentials, backend_routes, picker_limits
from kinference.vocabulary import Api, Role
from kinference.wire.access import Certificate, Token

KEY = Secret("${OPENAI_API_KEY}", "sk-real")
OPENAI = Backend(
    Name("openai"), Api.OPENAI_CHAT, {"gpt": "gpt-5"}, base_url=Url("https", "api.example", 443, "/v1"), api_key=KEY
)


def test_every_configured_limit_reaches_the_picker() -> None:
    configured = Limits(Size(1), Size(2), Size(3), Duration(4), Duration(5), Duration(6), Duration(7), Duration(8))
    limits = picker_limits(Config(limits=configured))
    assert (limits.body_max_bytes, limits.buffer_max_bytes, limits.chunk_max_bytes) == (1, 2, 3)
    assert (limits.push_idle_timeout, limits.body_ttl, limits.ticket_ttl) == (4, 5, 6)
    assert (limits.stalled_pull_ttl, limits.drain_timeout) == (7, 8)


def test_the_configured_tokens_are_who_may_call() -> None:
    token = AccessToken(Name("box"), Role.SANDBOX, Secret("${BOX}", "box-token"))
    rule = AccessCertificate("spiffe://agents/*", Role.SANDBOX, Name("team-a"))
    assert access_credentials(Config(access=Access((token,), (rule,))), lambda: 0.0) == (
        [Token("box", Role.SANDBOX, "box-token")],
        [Certificate("spiffe://agents/*", Role.SANDBOX, "team-a")],
        None,
    )


def test_a_key_for_signed_tokens_that_cannot_be_used_is_named_by_its_key(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    for content in (None, "no key"):
        if content is not None:
            file.write_text(content)
        config = Config(access=Access(sandbox_tokens=SandboxTokens(str(file), "us")))
        with pytest.raises(ConfigError, match=r"access\.sandbox_tokens\.public_key"):
            access_credentials(config, lambda: 0.0)


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

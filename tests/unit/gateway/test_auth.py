import pytest

from kinference.gateway.auth import Caller, ClientKey, Keyring, credentials
from kinference.ports import Headers
from kinference.vocabulary import QosClass

KEYS = (ClientKey("sk-one", "acme"), ClientKey("sk-two", "batch-team", QosClass.BATCH))


@pytest.mark.parametrize(
    "headers",
    [
        ((b"authorization", b"Bearer sk-one"),),
        ((b"authorization", b"bearer  sk-one"),),
        ((b"x-api-key", b"sk-one"),),
        ((b"api-key", b"sk-one"),),
        ((b"x-goog-api-key", b"sk-one"),),
        ((b"x-api-key", b"sk-one"), (b"authorization", b"Bearer sk-one")),
    ],
)
def test_a_key_is_found_in_whichever_field_an_sdk_puts_it(headers: Headers) -> None:
    assert Keyring(KEYS, allow_unauthenticated=False).identify(headers) == Caller("acme")


def test_a_key_brings_its_class() -> None:
    caller = Keyring(KEYS, allow_unauthenticated=False).identify(((b"x-api-key", b"sk-two"),))
    assert caller == Caller("batch-team", QosClass.BATCH)


@pytest.mark.parametrize("allow", [True, False])
@pytest.mark.parametrize(
    "headers",
    [
        ((b"x-api-key", b"sk-wrong"),),
        ((b"authorization", b"Basic sk-one"),),
        ((b"x-api-key", b"sk-one"), (b"authorization", b"Bearer sk-two")),
    ],
)
def test_a_key_that_nobody_issued_is_refused_even_where_none_is_needed(headers: Headers, *, allow: bool) -> None:
    assert Keyring(KEYS, allow_unauthenticated=allow).identify(headers) is None


@pytest.mark.parametrize("headers", [(), ((b"authorization", b"Bearer "),), ((b"x-api-key", b""),)])
def test_without_a_key_the_tenant_is_the_empty_one_where_that_is_allowed(headers: Headers) -> None:
    assert Keyring(KEYS, allow_unauthenticated=True).identify(headers) == Caller("")
    assert Keyring(KEYS, allow_unauthenticated=False).identify(headers) is None


def test_with_no_keys_configured_an_sdks_placeholder_does_no_harm() -> None:
    assert Keyring((), allow_unauthenticated=True).identify(((b"authorization", b"Bearer unused"),)) == Caller("")
    assert Keyring((), allow_unauthenticated=False).identify(((b"authorization", b"Bearer unused"),)) is None


def test_secrets_do_not_show_when_a_key_is_printed() -> None:
    assert "sk-one" not in repr(KEYS[0])


def test_a_bearer_token_is_read_without_its_scheme() -> None:
    assert credentials(((b"authorization", b"BEARER abc"),)) == [b"abc"]

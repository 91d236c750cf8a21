import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kinference.wire.sandbox_tokens import LEEWAY, Sandbox, SandboxTokens
from tests.unit.wire.signing import NOW, US, public_pem, sandbox_tokens, signed

KEY = Ed25519PrivateKey.generate()


@pytest.mark.parametrize(
    ("claims", "sandbox"),
    [
        ({}, Sandbox("7f3a", "")),
        ({"sandbox_id": "box-1", "workspace": "team-a"}, Sandbox("box-1", "team-a")),
        ({"exp": 0}, Sandbox("7f3a", "")),
        ({"exp": int(NOW - LEEWAY) + 1}, Sandbox("7f3a", "")),
        ({"exp": 10**400}, Sandbox("7f3a", "")),
        ({"nbf": NOW + LEEWAY}, Sandbox("7f3a", "")),
        ({"aud": ["other", US]}, Sandbox("7f3a", "")),
    ],
)
def test_the_platforms_token_names_its_sandbox(claims: dict[str, object], sandbox: Sandbox) -> None:
    assert sandbox_tokens(KEY).read(signed(KEY, **claims).encode()) == sandbox


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": int(NOW - LEEWAY)},
        {"exp": None},
        {"exp": True},
        {"exp": -(10**400)},
        {"nbf": 10**400},
        {"exp": "never"},
        {"nbf": NOW + LEEWAY + 1},
        {"nbf": "now"},
        {"aud": "somebody else"},
        {"aud": None},
        {"sub": None},
        {"sub": "spiffe://openshell/sandbox/"},
        {"sandbox_id": 7},
        {"sandbox_id": "x" * 129},
        {"workspace": ["team-a"]},
    ],
)
def test_a_token_that_is_not_for_us_or_not_of_this_time_names_nobody(claims: dict[str, object]) -> None:
    assert sandbox_tokens(KEY).read(signed(KEY, **claims).encode()) is None


def test_only_the_platforms_own_signature_counts() -> None:
    tokens, good = sandbox_tokens(KEY), signed(KEY)
    head, claims, signature = good.split(".")
    unsigned = jwt.encode({"aud": US, "sub": "a/b", "exp": 0}, "", algorithm="none")
    by_public_key = jwt.encode({"aud": US, "sub": "a/b", "exp": 0}, "x" * 32, algorithm="HS256")
    forged = (signed(Ed25519PrivateKey.generate()), f"{head}.{claims}.", f"{head}.{signature}.{claims}", unsigned)
    for token in (*forged, by_public_key, "", "a.b.c", good + "x", "é"):
        assert tokens.read(token.encode()) is None


@pytest.mark.parametrize("key", ["", "not a key", public_pem(KEY).replace("PUBLIC", "PRIVATE")])
def test_a_key_that_is_none_is_refused_at_the_start(key: str) -> None:
    with pytest.raises(ValueError, match="Ed25519 public key"):
        SandboxTokens(key, US, lambda: NOW)

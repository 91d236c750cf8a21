"""A platform that signs tokens for its sandboxes."""

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kinference.wire.sandbox_tokens import SandboxTokens

NOW = 1_800_000_000.0
US = "openshell-gateway:test"


def public_pem(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def sandbox_tokens(key: Ed25519PrivateKey) -> SandboxTokens:
    return SandboxTokens(public_pem(key), US, lambda: NOW)


def signed(key: Ed25519PrivateKey, **claims: object) -> str:
    """A good token, but for what is asked for; None leaves a claim out."""
    whole = {"iss": US, "aud": US, "sub": "spiffe://openshell/sandbox/7f3a", "exp": int(NOW) + 600, **claims}
    return jwt.encode({name: value for name, value in whole.items() if value is not None}, key, algorithm="EdDSA")

"""Tokens that a platform signs, one for each of its sandboxes: JSON Web Tokens (RFC 7519) under Ed25519 (RFC 8037)."""

from collections.abc import Callable
from dataclasses import dataclass

import jwt

from kinference.ids import Seconds

ALGORITHM = "EdDSA"
LEEWAY: Seconds = 60.0
NAME_CHARS_MAX = 128


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Whom a token is about."""

    name: str
    workspace: str


class SandboxTokens:
    """Knows the platform's public key, and no other algorithm than its."""

    def __init__(self, public_key: str, audience: str, wall: Callable[[], Seconds]) -> None:
        """`public_key` is PEM text. Raises ValueError when it is not an Ed25519 key."""
        algorithm = jwt.get_algorithm_by_name(ALGORITHM)
        try:
            self._key = algorithm.prepare_key(public_key)
        except (jwt.InvalidKeyError, TypeError, ValueError) as error:
            raise ValueError("not the PEM text of an Ed25519 public key") from error
        self._audience, self._wall = audience, wall

    def read(self, token: bytes) -> Sandbox | None:
        """The sandbox that a token names, if it is the platform's, for us, and of this time; `exp` 0 means never."""
        try:
            claims = jwt.decode(
                token,
                self._key,
                algorithms=[ALGORITHM],
                audience=self._audience,
                options={
                    "require": ["sub", "aud", "exp"],
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except jwt.InvalidTokenError:
            return None
        if not self._is_current(claims.get("exp"), claims.get("nbf", 0)):
            return None
        name = claims.get("sandbox_id") or str(claims["sub"]).rpartition("/")[2]
        workspace = claims.get("workspace", "")
        if not isinstance(name, str) or not isinstance(workspace, str) or not 0 < len(name) <= NAME_CHARS_MAX:
            return None
        return Sandbox(name, workspace)

    def _is_current(self, expires: object, begins: object) -> bool:
        if isinstance(expires, bool) or not isinstance(expires, int | float) or not isinstance(begins, int | float):
            return False
        now = self._wall()
        # Sums with our own numbers only: theirs may be integers that no float holds.
        return (expires == 0 or now - LEEWAY < expires) and begins <= now + LEEWAY

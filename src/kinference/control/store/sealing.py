"""Secrets at rest: each under a key of its own (AES-256-GCM), which is itself encrypted by the key of the key ring.

Rotation then only encrypts the small keys anew. The place of a secret is authenticated with it: what was sealed for one
record cannot be moved into another.
"""

import secrets
from collections.abc import Callable

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from kinference.control.errors import StoreFailed
from kinference.control.store.keys import KeyRing, new_key

NONCE_BYTES = 12


class Sealed(msgspec.Struct, frozen=True):
    """A secret that only a holder of the key can read. Nonces stand in front of what they belong to."""

    key_id: str
    wrapped_key: bytes
    secret: bytes


class Sealer:
    """Seals and opens with the keys of a ring, which is read before each sealing, and when a key is not in it."""

    def __init__(self, load: Callable[[], KeyRing]) -> None:
        self._load = load
        self._ring: KeyRing | None = None

    def seal(self, secret: str, place: str) -> Sealed:
        """A text, sealed for one place under the key that is current now. Raises StoreFailed without a usable key."""
        ring, key = self._load(), new_key()
        self._ring = ring
        return Sealed(ring.current, self._wrap(ring, key), _encrypt(key, secret.encode(), place))

    def open(self, sealed: Sealed, place: str) -> str:
        """The text again. Raises StoreFailed for a wrong key, a wrong place or a changed byte."""
        return _decrypt(self._unwrap(sealed), sealed.secret, place).decode()

    def rewrap(self, sealed: Sealed) -> Sealed:
        """The same secret under the current key."""
        ring = self._keys()
        return Sealed(ring.current, self._wrap(ring, self._unwrap(sealed)), sealed.secret)

    def _keys(self) -> KeyRing:
        if self._ring is None:
            self._ring = self._load()
        return self._ring

    def _wrap(self, ring: KeyRing, key: bytes) -> bytes:
        return _encrypt(ring.keys[ring.current], key, ring.current)

    def _unwrap(self, sealed: Sealed) -> bytes:
        if sealed.key_id not in self._keys().keys:
            self._ring = self._load()
        key = self._keys().keys.get(sealed.key_id)
        if key is None:
            raise StoreFailed(f"a secret was sealed with the key {sealed.key_id}, which is not in the key ring")
        return _decrypt(key, sealed.wrapped_key, sealed.key_id)


def _encrypt(key: bytes, plain: bytes, place: str) -> bytes:
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plain, place.encode())


def _decrypt(key: bytes, sealed: bytes, place: str) -> bytes:
    try:
        return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], place.encode())
    except (InvalidTag, ValueError):
        raise StoreFailed(f"what was sealed for {place} was damaged, or sealed for something else") from None

from collections.abc import Callable

import msgspec
import pytest

from kinference.control.errors import StoreFailed
from kinference.control.store.keys import KeyRing
from kinference.control.store.sealing import Sealed, Sealer

OLD, NEW = KeyRing({"old": b"o" * 32}), KeyRing({"new": b"n" * 32, "old": b"o" * 32})


def fixed(ring: KeyRing) -> Callable[[], KeyRing]:
    return lambda: ring


def test_what_was_sealed_opens_again_and_shows_nothing_meanwhile() -> None:
    sealer = Sealer(fixed(OLD))
    sealed = sealer.seal("sk-secret-é", "here")
    assert b"sk-secret" not in msgspec.json.encode(sealed)
    assert sealer.open(sealed, "here") == "sk-secret-é"
    assert sealer.seal("sk-secret-é", "here") != sealed


def test_it_opens_only_in_its_place() -> None:
    sealer = Sealer(fixed(OLD))
    with pytest.raises(StoreFailed, match="there was damaged"):
        sealer.open(sealer.seal("secret", "here"), "there")


@pytest.mark.parametrize("part", ["wrapped_key", "secret"])
@pytest.mark.parametrize("at", [0, -1, None])
def test_a_changed_byte_is_noticed(part: str, at: int | None) -> None:
    sealer = Sealer(fixed(OLD))
    sealed = sealer.seal("secret", "here")
    content = bytearray(getattr(sealed, part))
    if at is None:
        content.clear()
    else:
        content[at] ^= 1
    changed: Sealed = msgspec.structs.replace(sealed, **{part: bytes(content)})
    with pytest.raises(StoreFailed, match="damaged"):
        sealer.open(changed, "here")


def test_after_a_rotation_old_secrets_open_and_new_ones_use_the_new_key() -> None:
    sealed = Sealer(fixed(OLD)).seal("secret", "here")
    rotated = Sealer(fixed(NEW))
    assert rotated.open(sealed, "here") == "secret"
    assert rotated.seal("secret", "here").key_id == "new"
    rewrapped = rotated.rewrap(sealed)
    assert (rewrapped.key_id, rewrapped.secret) == ("new", sealed.secret)
    assert Sealer(fixed(KeyRing({"new": b"n" * 32}))).open(rewrapped, "here") == "secret"


def test_a_key_that_came_after_the_start_is_looked_for() -> None:
    rings = [OLD, NEW, NEW]
    sealer = Sealer(lambda: rings.pop(0))
    sealer.seal("other", "here")
    assert sealer.open(Sealer(fixed(NEW)).seal("secret", "here"), "here") == "secret"
    assert sealer.seal("other", "here").key_id == "new"


def test_a_key_that_is_lost_is_named() -> None:
    with pytest.raises(StoreFailed, match="the key new, which is not in the key ring"):
        Sealer(fixed(OLD)).open(Sealer(fixed(NEW)).seal("secret", "here"), "here")

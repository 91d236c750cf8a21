"""The keys that encrypt the keys of secrets: from the environment, from a file, or made on first use."""

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from kinference.control.errors import StoreFailed

KEY_VARIABLE = "KINFERENCE_SECRET_KEY"
FILE_VARIABLE = "KINFERENCE_SECRET_KEY_FILE"
FILE_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True, repr=False)
class KeyRing:
    """Keys by their ids. The first encrypts; the others only open what was sealed before a rotation."""

    keys: Mapping[str, bytes]

    @property
    def current(self) -> str:
        return next(iter(self.keys))


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where the keys are. Read at each call: a rotation by another process is noticed."""

    variables: Mapping[str, str] = field(repr=False)
    default_file: Path

    @property
    def file(self) -> Path | None:
        """The file with the keys; None when the environment holds them itself."""
        if self.variables.get(KEY_VARIABLE):
            return None
        named = self.variables.get(FILE_VARIABLE)
        return Path(named) if named else self.default_file

    def load(self) -> KeyRing:
        """The keys; makes the default file when nothing is configured. Raises StoreFailed."""
        file = self.file
        if file is None:
            return _ring(self.variables[KEY_VARIABLE], KEY_VARIABLE)
        try:
            if file == self.default_file and not file.exists():
                _create(file, (new_key(),))
            with file.open("rb") as content:
                return _ring(content.read(FILE_BYTES_MAX).decode("ascii", "replace"), str(file))
        except OSError as error:
            raise StoreFailed(f"the secret key file {file} cannot be used: {error.strerror}") from None

    def rotate(self) -> None:
        """Put a new key first. Raises StoreFailed when the keys stand where only the operator can change them."""
        self._replace((new_key(), *self.load().keys.values()))

    def forget(self) -> None:
        """Drop the keys that no secret needs once all are under the first.

        The one before it stays, for what another process sealed a moment ago.
        """
        self._replace(tuple(self.load().keys.values())[:2])

    def _replace(self, keys: tuple[bytes, ...]) -> None:
        file = self.file
        if file is None:
            raise StoreFailed(f"write the new key in front of the old one in {KEY_VARIABLE}, with a comma between")
        fresh = file.with_name(file.name + ".new")
        try:
            fresh.unlink(missing_ok=True)
            _write(fresh, keys)
            fresh.replace(file)
        except OSError as error:
            raise StoreFailed(f"the secret key file {file} cannot be changed: {error.strerror}") from None


def new_key() -> bytes:
    return secrets.token_bytes(32)


def _ring(text: str, where: str) -> KeyRing:
    """Keys of 64 hex digits, one a line or with commas between. What is wrong is told, never what stands there."""
    words = re.split(r"[\s,]+", text.strip())
    if not all(re.fullmatch(r"[0-9a-fA-F]{64}", word) for word in words):
        raise StoreFailed(f"{where} must hold a key of 64 hex digits; make one with: openssl rand -hex 32")
    keys = [bytes.fromhex(word) for word in words]
    return KeyRing({blake2b(key, digest_size=8, person=b"kinference-key").hexdigest(): key for key in keys})


def _create(file: Path, keys: tuple[bytes, ...]) -> None:
    """The file appears whole, and the first of two processes wins."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    _write(draft, keys)
    try:
        os.link(draft, file)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _write(file: Path, keys: tuple[bytes, ...]) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as content:
        content.writelines(f"{key.hex()}\n" for key in keys)
        content.flush()
        os.fsync(content.fileno())

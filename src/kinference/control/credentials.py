"""Secrets on their way into a record and out of it."""

from collections.abc import Callable, Mapping

from kinference.config.env import secret_reader
from kinference.config.values import Secret, Unreadable
from kinference.control.errors import Unmet
from kinference.control.providers import place_of
from kinference.control.store.sealing import Sealed, Sealer


class Credentials:
    """Seals secrets that are handed over, and leaves references as they are until somebody needs what they name."""

    def __init__(self, sealer: Sealer, environ: Mapping[str, str]) -> None:
        self._sealer = sealer
        self._read: Callable[[str], Secret] = secret_reader(environ)

    def seal(self, provider: str, secrets: Mapping[str, str]) -> dict[str, Sealed]:
        """Sealed for a provider's record. Raises StoreFailed without a usable key."""
        return {key: self._sealer.seal(secret, place_of(provider, key)) for key, secret in secrets.items()}

    def reveal(self, stored: Sealed | str, place: str) -> str:
        """The secret. Raises StoreFailed when it cannot be opened, Unmet when a reference leads to nothing."""
        if isinstance(stored, Sealed):
            return self._sealer.open(stored, place)
        try:
            return self._read(stored).reveal()
        except Unreadable as error:
            raise Unmet(f"{place}: {error.problem}; {error.fix}") from None

    def rewrap(self, stored: Sealed | str) -> Sealed | str:
        """The same under the current key."""
        return self._sealer.rewrap(stored) if isinstance(stored, Sealed) else stored

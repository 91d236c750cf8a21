"""Secrets on their way into a record and out of it."""

from collections.abc import Callable, Iterable, Mapping

from kinference.config.env import secret_reader
from kinference.config.values import Secret, Unreadable
from kinference.control.errors import Unmet
from kinference.control.kubernetes_secrets import PREFIX, KubernetesSecrets
from kinference.control.providers import Reveal, place_of
from kinference.control.store.sealing import Sealed, Sealer


class Credentials:
    """Seals secrets that are handed over, and leaves references as they are until somebody needs what they name."""

    def __init__(self, sealer: Sealer, environ: Mapping[str, str], kubernetes: KubernetesSecrets | None = None) -> None:
        """`kubernetes` is for references into a cluster; None outside of one."""
        self._sealer, self._kubernetes = sealer, kubernetes
        self._read: Callable[[str], Secret] = secret_reader(environ)

    def seal(self, provider: str, secrets: Mapping[str, str]) -> dict[str, Sealed]:
        """Sealed for a provider's record. Raises StoreFailed without a usable key."""
        return {key: self._sealer.seal(secret, place_of(provider, key)) for key, secret in secrets.items()}

    async def revealer(self, stored: Iterable[Sealed | str]) -> Reveal:
        """What reveals these. Those in a cluster are fetched now, and their failures kept for who needs them."""
        away = {each for each in stored if isinstance(each, str) and each.startswith(PREFIX)}
        fetched = {reference: await self._fetched(reference) for reference in away}

        def reveal(stored: Sealed | str, place: str) -> str:
            found = fetched.get(stored) if isinstance(stored, str) else None
            if isinstance(found, Unmet):
                raise Unmet(f"{place}: {found}")
            return self.reveal(stored, place) if found is None else found

        return reveal

    async def _fetched(self, reference: str) -> str | Unmet:
        if self._kubernetes is None:
            return Unmet(f"{reference} is in a cluster, and this process is in none")
        try:
            return await self._kubernetes.read(reference)
        except Unmet as error:
            return error

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

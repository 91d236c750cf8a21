"""The provider records: what may be stored, how an update merges, and what a reader may see."""

import logging
import re
import secrets
import string
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from kinference.config.decode import is_clean
from kinference.config.values import REFERENCE_PATTERN
from kinference.control.catalogue import Catalogue, Provider
from kinference.control.credentials import Credentials
from kinference.control.errors import Missing, Overtaken, Referred, Taken, Unmet
from kinference.control.kubernetes_secrets import REFERENCE as IN_KUBERNETES
from kinference.control.store.sealing import Sealed
from kinference.errors import InvalidArgument

NAME_BYTES_MAX = 253
TYPE_CHARS_MAX = 64
CREDENTIALS_MAX = 32
CONFIG_MAX = 64
KEY_BYTES_MAX = 256
VALUE_BYTES_MAX = 8192
AUTOMATIC_NAME_CHARS = 6
REWRAP_TRIES = 10
REDACTED = "REDACTED"
SECRET_KEY = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)

_AUDIT = logging.getLogger("kinference.control.audit")


@dataclass(frozen=True, slots=True)
class ProviderChange:
    """What a caller wants a record to be, or to become. An empty value deletes its key on update."""

    type: str = ""
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    references: Mapping[str, str] = field(default_factory=dict)
    """Credentials that stay where they are, read whenever they are needed: `${NAME}`, `file:PATH`, `k8s:...`."""
    config: Mapping[str, str] = field(default_factory=dict)


class Registry:
    """The rules of the records. `actor` in each change is who asked, for the audit log."""

    def __init__(self, catalogue: Catalogue, credentials: Credentials, used_by: Callable[[str], Sequence[str]]) -> None:
        """`used_by` tells what beside the routes uses a provider: backends of the configuration."""
        self._catalogue, self._credentials, self._used_by = catalogue, credentials, used_by

    async def create(self, name: str, change: ProviderChange, actor: str) -> Provider:
        """A new record; without a name it gets one. Raises InvalidArgument or Taken."""
        name = name or "".join(secrets.choice(string.ascii_lowercase) for _ in range(AUTOMATIC_NAME_CHARS))
        _check_name(name)
        if not change.type.strip():
            raise InvalidArgument("type is required")
        fresh = self._merged(Provider(name, change.type.strip(), {}, {}), change)
        try:
            version = await self._catalogue.write_provider(fresh)
        except Overtaken:
            raise Taken(f"provider '{name}' already exists; change it with: kinference provider update") from None
        self._log("provider created", fresh, change, actor)
        return replace(fresh, version=version)

    async def get(self, name: str) -> Provider:
        _check_name(name)
        provider = await self._catalogue.provider(name)
        if provider is None:
            raise Missing(f"provider '{name}' not found; see: kinference provider list")
        return provider

    async def all(self) -> Sequence[Provider]:
        """By name."""
        return await self._catalogue.providers()

    async def update(self, name: str, change: ProviderChange, actor: str) -> Provider:
        """Merge into a record. Raises InvalidArgument, Missing, or Overtaken when it was changed meanwhile."""
        old = await self.get(name)
        if change.type.strip() and change.type.strip().lower() != old.type.lower():
            raise InvalidArgument(f"the type of provider '{name}' is {old.type} and cannot be changed")
        fresh = self._merged(old, change)
        version = await self._catalogue.write_provider(fresh)
        self._log("provider updated", fresh, change, actor)
        return replace(fresh, version=version)

    async def delete(self, name: str, actor: str) -> bool:
        """Whether there was one. Raises Unmet while something uses it."""
        _check_name(name)
        users = list(self._used_by(name))
        try:
            deleted = not users and await self._catalogue.delete_provider(name)
        except Referred:
            users = [f"route {route.key}" for route in await self._catalogue.routes() if route.provider_name == name]
        if users:
            raise Unmet(f"provider '{name}' is used by {', '.join(users)}; point them elsewhere first")
        _AUDIT.info("provider deleted", extra={"actor": actor, "provider": name, "existed": deleted})
        return deleted

    async def rewrap(self) -> int:
        """Put every secret under the current key; how many records were changed."""
        names = [provider.name for provider in await self._catalogue.providers()]
        return sum([await self._rewrapped(name) for name in names])

    async def _rewrapped(self, name: str) -> bool:
        """Whether there was still such a record. A change by somebody else in between is taken up and tried again."""
        for _ in range(REWRAP_TRIES):
            provider = await self._catalogue.provider(name)
            if provider is None:
                return False
            fresh = {key: self._credentials.rewrap(stored) for key, stored in provider.credentials.items()}
            with suppress(Overtaken):
                await self._catalogue.write_provider(replace(provider, credentials=fresh))
                return True
        raise Overtaken(f"provider '{name}' is being changed all the time; try again")

    def _merged(self, old: Provider, change: ProviderChange) -> Provider:
        _check_change(change)
        sealed = self._credentials.seal(old.name, {key: value for key, value in change.credentials.items() if value})
        dropped = {key for key, value in change.credentials.items() if not value}
        credentials = {**old.credentials, **sealed, **change.references}
        config = {key: value for key, value in {**old.config, **change.config}.items() if value}
        if len(credentials) > CREDENTIALS_MAX or len(config) > CONFIG_MAX:
            raise InvalidArgument(
                f"a provider has at most {CREDENTIALS_MAX} credentials and {CONFIG_MAX} config values"
            )
        kept = {key: stored for key, stored in credentials.items() if key not in dropped}
        return replace(old, credentials=kept, config=config)

    def _log(self, what: str, provider: Provider, change: ProviderChange, actor: str) -> None:
        """Which keys were given, never what under them."""
        keys = ",".join(sorted({*change.credentials, *change.references, *change.config}))
        _AUDIT.info(what, extra={"actor": actor, "provider": provider.name, "type": provider.type, "keys": keys})


def redacted(provider: Provider) -> Mapping[str, object]:
    """A record as a reader may see it: which credentials there are, and where a reference leads."""
    credentials = {
        key: REDACTED if isinstance(stored, Sealed) else stored for key, stored in provider.credentials.items()
    }
    return {
        "name": provider.name,
        "type": provider.type,
        "credentials": credentials,
        "config": dict(provider.config),
        "version": provider.version,
    }


def _check_name(name: str) -> None:
    if not name.strip():
        raise InvalidArgument("name is required")
    if len(name.encode()) > NAME_BYTES_MAX or not is_clean(name):
        raise InvalidArgument(f"name must be at most {NAME_BYTES_MAX} bytes without control characters")


def _check_change(change: ProviderChange) -> None:
    if len(change.type) > TYPE_CHARS_MAX or not is_clean(change.type):
        raise InvalidArgument(f"type must be at most {TYPE_CHARS_MAX} characters")
    if len(change.credentials) + len(change.references) > CREDENTIALS_MAX or len(change.config) > CONFIG_MAX:
        raise InvalidArgument(f"a provider has at most {CREDENTIALS_MAX} credentials and {CONFIG_MAX} config values")
    for entries in (change.credentials, change.references, change.config):
        for key, value in entries.items():
            _check_entry(key, value)
    for key, value in change.credentials.items():
        if not value.isascii():
            raise InvalidArgument(f"credential {key} holds characters that no HTTP header may")
    for key, value in change.references.items():
        if re.fullmatch(REFERENCE_PATTERN, value) is None and IN_KUBERNETES.fullmatch(value) is None:
            raise InvalidArgument(f"credential {key} must refer to ${{NAME}}, file:PATH or k8s:NAMESPACE/NAME/KEY")
    for key, value in change.config.items():
        if _has_user(value):
            raise InvalidArgument(f"config {key} is a URL with a user or password; give the secret as a credential")
        if SECRET_KEY.search(key):
            raise InvalidArgument(
                f"config {key} looks like a secret, which would be stored and shown; it is a credential"
            )


def _check_entry(key: str, value: str) -> None:
    if not key.strip() or len(key.encode()) > KEY_BYTES_MAX or not is_clean(key):
        raise InvalidArgument(f"each key must be 1 to {KEY_BYTES_MAX} bytes without control characters")
    if len(value.encode(errors="replace")) > VALUE_BYTES_MAX:
        raise InvalidArgument(f"the value of {key} is longer than {VALUE_BYTES_MAX} bytes")
    if not is_clean(value):
        raise InvalidArgument(f"the value of {key} holds control characters")


def _has_user(value: str) -> bool:
    try:
        return "@" in urlsplit(value).netloc
    except ValueError:
        return False

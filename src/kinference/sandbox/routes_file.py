"""Routes from a YAML file, for a sandbox without a control plane; the fields are those of OpenShell's route file."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import yaml

from kinference.errors import ConfigError
from kinference.sandbox.routes import SandboxRoute

FILE_BYTES_MAX = 1024 * 1024


class FileRoute(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One route as it is written."""

    name: str
    endpoint: str
    model: str
    protocols: list[str]
    provider_type: str = "openai"
    api_key: str | None = None
    api_key_env: str | None = None


class RoutesFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    routes: list[FileRoute]


def read_routes(path: Path, environ: Mapping[str, str]) -> list[SandboxRoute]:
    """The routes of a file. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror}", "check the path") from None
    if len(content) > FILE_BYTES_MAX:
        raise ConfigError(str(path), f"over {FILE_BYTES_MAX} bytes", "no route file is that long")
    try:
        written = msgspec.convert(yaml.safe_load(content), RoutesFile)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = str(error) if isinstance(error, msgspec.ValidationError) else "not YAML"
        raise ConfigError(str(path), problem, "write routes: a list of name, endpoint, model, protocols") from None
    return [_route(each, f"{path}: routes[{place}]", environ) for place, each in enumerate(written.routes)]


def _route(each: FileRoute, path: str, environ: Mapping[str, str]) -> SandboxRoute:
    protocols = tuple(dict.fromkeys(name for word in each.protocols if (name := word.strip().lower())))
    if not protocols:
        raise ConfigError(f"{path}.protocols", "no protocol", "list at least one, for example openai_chat_completions")
    for field, value in (("name", each.name), ("endpoint", each.endpoint), ("model", each.model)):
        if not value.strip():
            raise ConfigError(f"{path}.{field}", "is empty", "write one")
    key = _key(each, path, environ)
    return SandboxRoute(each.name, each.endpoint.strip(), protocols, key, each.model, each.provider_type)


def _key(each: FileRoute, path: str, environ: Mapping[str, str]) -> str:
    if each.api_key is not None:
        return each.api_key
    if each.api_key_env is None:
        raise ConfigError(path, "neither api_key nor api_key_env", "name the variable that holds the key: api_key_env")
    if each.api_key_env not in environ:
        raise ConfigError(f"{path}.api_key_env", f"{each.api_key_env} is not set", "set it in the environment")
    return environ[each.api_key_env]

"""The environment's part: overrides of single keys, and the secrets that the file refers to.

The only module that touches `os.environ`; everything else is handed a mapping.
"""

import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kinference.config.decode import BROKEN, Decoder, is_clean
from kinference.config.keys import Key, Setting, keys_of, settings
from kinference.config.problems import InvalidConfig
from kinference.config.scalars import Scalar
from kinference.config.schema import Config
from kinference.config.values import FILE, Secret, Unreadable
from kinference.errors import ConfigError

PREFIX = "KINFERENCE_"
RESERVED = ("KINFERENCE_SECRET_", "KINFERENCE_PORT", "KINFERENCE_SERVICE_")
"""Never settings: secrets for `${...}` references, and what Kubernetes sets for a Service called kinference."""

SECRET_BYTES_MAX = 64 * 1024

Apply = Callable[[Config], Config]


def process_environment() -> Mapping[str, str]:
    """The environment of this process."""
    return os.environ


def state_folder(environ: Mapping[str, str]) -> Path:
    """Where this user's programs keep what must outlive them."""
    base = environ.get("XDG_STATE_HOME") or Path(environ.get("HOME") or "/var/lib") / ".local/state"
    return Path(base) / "kinference"


def variable_of(setting: Setting) -> str:
    """`limits.body_max_bytes` is `KINFERENCE_LIMITS_BODY_MAX_BYTES`."""
    return PREFIX + setting.path.replace(".", "_").upper()


def overrides(environ: Mapping[str, str], scalars: Mapping[Any, Scalar], decoder: Decoder) -> list[Apply]:
    """What the environment changes, as functions to apply; its problems go to the decoder, under the variable."""
    found: dict[str, tuple[Sequence[Key], dict[str, Any]]] = {}
    for setting in settings(Config, scalars):
        variable = variable_of(setting)
        if variable in environ:
            value = decoder.read(setting.key.kind, environ[variable], variable)
            if value is not BROKEN:
                _, values = found.setdefault(setting.path.rpartition(".")[0], (setting.sections, {}))
                values[setting.key.attribute] = value
    return [_change(*each) for each in found.values()]


def _change(sections: Sequence[Key], values: Mapping[str, Any]) -> Apply:
    """Raises InvalidConfig where the values do not suffice for a section that the file lacks."""

    def apply(config: Config) -> Config:
        changed: Config = _replaced(config, sections, values)
        return changed

    return apply


def _replaced(part: Any, sections: Sequence[Key], values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any section
    if not sections:
        return replace(part, **values)
    attribute, deeper = sections[0].attribute, sections[1:]
    inner = getattr(part, attribute)
    made = _made(sections[0], values) if inner is None else _replaced(inner, deeper, values)
    return replace(part, **{attribute: made})


def _made(section: Key, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any section
    """A section that the file lacks."""
    for key in keys_of(section.kind).values():
        if key.is_required and key.attribute not in values:
            problem = f"the environment names a part of the section {section.name} and not its {key.name}"
            raise InvalidConfig([ConfigError(section.name, problem, f"set that too: {key.help}")])
    return section.kind(**values)


def unknown_variables(environ: Mapping[str, str], scalars: Mapping[Any, Scalar]) -> Iterator[str]:
    """Advice for variables that look like ours and set nothing. Not an error: others may set variables around us."""
    known = {variable_of(setting): setting for setting in settings(Config, scalars)}
    for variable in sorted(environ):
        if variable.startswith(PREFIX) and not variable.startswith(RESERVED) and variable not in known:
            close = difflib.get_close_matches(variable, known, 1, cutoff=0.8)
            yield f"{variable} sets nothing" + (f"; did you mean {close[0]}?" if close else "")


def secret_reader(environ: Mapping[str, str]) -> Callable[[str], Secret]:
    """How a `${NAME}` or `file:PATH` reference becomes the secret."""

    def read(reference: str) -> Secret:
        if match := re.fullmatch(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", reference):
            value = _from_variable(match[1], environ)
        elif reference.startswith(FILE):
            value = _from_file(reference.removeprefix(FILE))
        else:
            raise Unreadable("a secret may not stand in the file", "write ${VARIABLE} or file:/path/of/the/key")
        if not value:
            raise Unreadable(f"{reference} is empty", "put the secret there")
        if not value.isascii() or not is_clean(value):
            raise Unreadable(f"{reference} holds characters that no HTTP header may", "check how it was written")
        return Secret(reference, value)

    return read


def _from_variable(name: str, environ: Mapping[str, str]) -> str:
    if name not in environ:
        raise Unreadable(f"{name} is not set in the environment", f"set {name}, or write file:/path/of/the/key")
    return environ[name]


def _from_file(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            content = file.read(SECRET_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a path"
        raise Unreadable(f"file:{path} cannot be read: {why}", "check the path and its permissions") from None
    if len(content) > SECRET_BYTES_MAX:
        raise Unreadable(f"file:{path} is over {SECRET_BYTES_MAX} bytes", "point at a file that holds only the secret")
    return content.decode("utf-8", errors="replace").rstrip("\r\n")

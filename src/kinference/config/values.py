"""The kinds of value that a configuration holds beyond text and numbers, and how each is written."""

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NewType
from urllib.parse import unquote, urlsplit

from kinference.ids import Address, ObjectRef

Size = NewType("Size", int)
"""Bytes: `33554432` or `32MiB`."""

Duration = NewType("Duration", float)
"""Seconds: `30`, `30s`, `500ms`, `2m` or `1h`."""

Count = NewType("Count", int)
"""A whole number from 0 up: weights, priorities."""

Name = NewType("Name", str)
"""The name of a pool, a backend or a namespace: no slash, no white space."""

StoreUrl = NewType("StoreUrl", str)
"""Where the control plane keeps its records: `sqlite:///FILE` or `postgresql://...` without a password."""

HttpPath = NewType("HttpPath", str)
"""A path that begins with a slash, without scheme, query or fragment."""

SIZE_UNITS = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "KB": 10**3, "MB": 10**6, "GB": 10**9}
DURATION_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}

SIZE_PATTERN = r"^\d{1,15} ?(B|KiB|MiB|GiB|KB|MB|GB)?$"
DURATION_PATTERN = r"^\d{1,12}(\.\d{1,9})? ?(ms|s|m|h)?$"
NAME_PATTERN = r"^[^/\s]{1,253}$"
REF_PATTERN = r"^([^/\s]{1,253}/)?[^/\s]{1,253}$"
HOST_PORT_PATTERN = r"^(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):\d{1,5}$"
URL_PATTERN = r"^https?://[^\s/?#@]+(/[^\s?#]*)?$"
PATH_PATTERN = r"^/[^\s?#]*(\?[^\s#]*)?$"
STORE_PATTERN = r"^(sqlite:///[^\s?#]+|postgresql://[^\s#]+)$"
FLAGS = {"true": True, "false": False}

FILE = "file:"
REFERENCE_PATTERN = r"^(\$\{[A-Za-z_][A-Za-z0-9_]*\}|file:.+)$"

COUNT_MAX = 999_999_999
PORT_MAX = 65535
DEFAULT_NAMESPACE = "default"
DEFAULT_WORKSPACE = "default"
"""Of the control plane: where routes are when nobody names another."""


class Unreadable(Exception):
    """A text that is no such value: what is wrong, and how to write it instead."""

    def __init__(self, problem: str, fix: str) -> None:
        self.problem, self.fix = problem, fix
        super().__init__(f"{problem}; {fix}")


@dataclass(frozen=True, slots=True)
class HostPort:
    """Where to listen. Port 0 lets the system choose; an IPv6 host is kept without its brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{bracketed(self.host)}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Only this machine can connect. A host name other than `localhost` may resolve to anything, so it is not."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class Url:
    """An HTTP origin and the path prefix under it (no trailing slash, "" for none)."""

    scheme: str
    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        return self.origin + self.path

    @property
    def address(self) -> Address:
        return Address(f"{bracketed(self.host)}:{self.port}")

    @property
    def origin(self) -> str:
        """`scheme://host:port`, as `ports.UpstreamRequest` wants it."""
        return f"{self.scheme}://{self.address}"


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A credential. Only `reveal` shows it; everything that prints shows the reference that it came from."""

    reference: str
    value: str

    def reveal(self) -> str:
        return self.value

    @property
    def file(self) -> Path | None:
        """Where it was read from; None for a variable."""
        return Path(self.reference.removeprefix(FILE)) if self.reference.startswith(FILE) else None

    def __repr__(self) -> str:
        return f"Secret({self.reference!r})"

    def __str__(self) -> str:
        return self.reference


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def parse_size(text: str) -> Size:
    match = re.fullmatch(r"(\d{1,15}) ?([A-Za-z]*)", text, re.ASCII)
    if match is None or match[2] not in SIZE_UNITS:
        raise Unreadable("not a size", "write bytes as a whole number or with a unit: 1048576, 64KiB, 32MiB, 1GiB")
    return Size(int(match[1]) * SIZE_UNITS[match[2]])


def parse_duration(text: str) -> Duration:
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,9})?) ?([a-z]*)", text, re.ASCII)
    if match is None or match[2] not in DURATION_UNITS:
        raise Unreadable("not a time", "write seconds as a number or with a unit: 30, 500ms, 30s, 2m, 1h")
    return Duration(float(match[1]) * DURATION_UNITS[match[2]])


def spell_size(size: int) -> str:
    """The shortest exact spelling: 33554432 is `32MiB`."""
    for unit in ("GiB", "MiB", "KiB"):
        if size and size % SIZE_UNITS[unit] == 0:
            return f"{size // SIZE_UNITS[unit]}{unit}"
    return str(size)


def spell_duration(seconds: float) -> str:
    """The largest unit that leaves a whole number: 120 seconds are `2m`; else plain seconds."""
    for unit in ("h", "m", "s"):
        if seconds and seconds % DURATION_UNITS[unit] == 0:
            return f"{seconds / DURATION_UNITS[unit]:.0f}{unit}"
    return f"{seconds:.9f}".rstrip("0").rstrip(".") + "s"


def parse_count(text: str) -> Count:
    if re.fullmatch(r"\d{1,9}", text, re.ASCII) is None:
        raise Unreadable(f"not a whole number from 0 to {COUNT_MAX}", "write it in digits")
    return Count(int(text))


def parse_integer(text: str) -> int:
    if re.fullmatch(r"-?\d{1,18}", text, re.ASCII) is None:
        raise Unreadable("not a whole number", "write it in digits")
    return int(text)


def parse_number(text: str) -> float:
    if re.fullmatch(r"-?\d{1,18}(\.\d{0,18})?([eE][+-]?\d{1,2})?", text, re.ASCII) is None:
        raise Unreadable("not a number", "write it in digits: 1, 0.5, 1e-3")
    return float(text)


def parse_name(text: str) -> Name:
    if re.fullmatch(NAME_PATTERN, text) is None:
        raise Unreadable("not a name", "use 1 to 253 characters without slash or white space")
    return Name(text)


def parse_ref(text: str) -> ObjectRef:
    if re.fullmatch(REF_PATTERN, text) is None:
        raise Unreadable("not the name of a pool or backend", "write NAME or NAMESPACE/NAME")
    namespace, slash, name = text.rpartition("/")
    return ObjectRef(namespace if slash else DEFAULT_NAMESPACE, name)


def parse_host_port(text: str) -> HostPort:
    fix = 'write HOST:PORT, an IPv6 host in brackets and the whole in quotes: 127.0.0.1:8080, "[::1]:8080"'
    if re.fullmatch(HOST_PORT_PATTERN, text, re.ASCII) is None:
        raise Unreadable("not an address to listen on", fix)
    host, _, port = text.rpartition(":")
    if int(port) > PORT_MAX:
        raise Unreadable(f"port over {PORT_MAX}", "choose a port from 0 (any free one) to 65535")
    if host.startswith("["):
        host = host[1:-1]
        if not _is_ipv6(host):
            raise Unreadable("not an IPv6 address between the brackets", fix)
    return HostPort(host, int(port))


def parse_url(text: str) -> Url:
    fix = "write http://HOST:PORT or https://HOST, with a path prefix if there is one"
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise Unreadable("not a URL", fix) from None
    if parts.scheme not in ("http", "https") or not host:
        raise Unreadable("not an http or https URL", fix)
    if "@" in parts.netloc:
        raise Unreadable("a URL with a user or password", "credentials go into api_key")
    if re.fullmatch(URL_PATTERN, text, re.IGNORECASE) is None:
        raise Unreadable("a URL with a query, a fragment or white space", fix)
    if port == 0:
        raise Unreadable("port 0 cannot be connected to", "write the port that the server listens on")
    if port is None:
        port = 443 if parts.scheme == "https" else 80
    return Url(parts.scheme, host, port, parts.path.rstrip("/"))


def parse_path(text: str) -> HttpPath:
    if re.fullmatch(PATH_PATTERN, text) is None or text.startswith("//"):
        raise Unreadable("not a path", "begin with one slash; no scheme, host or fragment: /v1/chat/completions")
    if ".." in unquote(text.partition("?")[0]).split("/"):
        raise Unreadable("a path that leads upwards", "write it without ..")
    return HttpPath(text)


def parse_store(text: str) -> StoreUrl:
    fix = "write sqlite:///FILE, or postgresql://USER@HOST/DATABASE"
    if re.fullmatch(STORE_PATTERN, text) is None:
        raise Unreadable("not a store", fix)
    user, at, _ = text.partition("://")[2].partition("/")[0].rpartition("@")
    if (at and ":" in user) or "password=" in text.lower():
        raise Unreadable("a store's address with a password", "set PGPASSWORD, or PGPASSFILE to a file that holds it")
    return StoreUrl(text)


def parse_flag(text: str) -> bool:
    if text not in FLAGS:
        raise Unreadable("neither true nor false", "write true or false")
    return FLAGS[text]


def parse_text(text: str) -> str:
    return text


def _is_ipv6(host: str) -> bool:
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True

"""Web pages that ask a port which asks nobody for a credential: those from elsewhere, and those whose name leads here.

Whoever owns a name can have it lead to this machine (DNS rebinding): to a browser that looks at their page, our port is
theirs then. What such a page cannot do is hide the name, in `Host` and in `Origin`, nor show a credential.
"""

import ipaddress
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from kinference.ports import Headers
from kinference.wire.access import Denied
from kinference.wire.fields import header

_OF_PAGES: Final[tuple[str, ...]] = ("http", "https")
_LOCALHOST: Final = "localhost"
_WITHOUT_ORIGIN: Final = frozenset({"GET", "HEAD"})
"""What browsers send without an `Origin` to where the page is from, or seems to be."""


class OwnNames:
    """The names and addresses that mean this machine to itself, and those that it was told are its own."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset(name.lower().rstrip(".") for name in names)

    def include(self, authority: str) -> bool:
        """Whether `HOST` or `HOST:PORT` is us."""
        try:
            host = (urlsplit(f"//{authority}").hostname or "").rstrip(".")
        except ValueError:  # brackets that hold no address
            return False
        return host in self._names or host == _LOCALHOST or host.endswith(f".{_LOCALHOST}") or _is_loopback(host)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_other_names(headers: Headers, names: OwnNames) -> None:
    """Raises Denied for a request to a name that is not ours."""
    host = header(headers, b"host")
    if host is not None and not names.include(host.decode("latin-1")):
        raise Denied(
            "this port asks nobody for a credential and so answers under names of this machine alone: ask 127.0.0.1 or "
            "localhost, configure access.tokens, or add the name to listen.names"
        )


def refuse_pages(headers: Headers, names: OwnNames, asker: str) -> None:
    """Raises Denied for what a web page from elsewhere sends, and one under another name without a credential.

    A page of the port's own, whatever that is called, may if it shows one: `asker` is who that stands for, "" without.
    """
    origin = header(headers, b"origin")
    if origin is None:
        return
    own = (header(headers, b"host") or b"").decode("latin-1").lower()
    page = origin.decode("latin-1").lower().partition("://")[2]
    if asker and page and page == own:
        return
    if not names.include(page):
        raise Denied("requests of web pages from elsewhere are refused")
    if not names.include(own):
        raise Denied("requests of web pages under another name of this machine are refused")


def is_of_a_strange_page(method: str, headers: Headers, names: OwnNames) -> bool:
    """Whether a web page from elsewhere sends this, or may. Programs have none, or one of their own scheme."""
    origin = header(headers, b"origin")
    if origin is None:
        host = header(headers, b"host")
        return method in _WITHOUT_ORIGIN and host is not None and not names.include(host.decode("latin-1"))
    scheme, separator, page = origin.decode("latin-1").lower().partition("://")
    return not separator or (scheme in _OF_PAGES and not names.include(page))

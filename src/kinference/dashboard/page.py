"""The page that people open on the admin port: static files, which ask the port's own JSON for everything they show."""

from collections.abc import Mapping
from importlib.resources import files

from kinference.wire.exchange import Exchange, respond

KINDS: Mapping[str, bytes] = {
    "page.html": b"text/html; charset=utf-8",
    "page.css": b"text/css; charset=utf-8",
    "page.js": b"text/javascript; charset=utf-8",
}
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_GUARDS = (
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
)
"""Nothing from elsewhere is loaded, nothing is sent elsewhere, and no other page shows this one."""


class Page:
    """The files by their paths. They hold no data, so that whoever asks may have them."""

    def __init__(self) -> None:
        folder = files("kinference.dashboard") / "static"
        self._files = {f"/{name}": ((folder / name).read_bytes(), kind) for name, kind in KINDS.items()}
        self._files["/"] = self._files["/page.html"]

    def serves(self, path: str) -> bool:
        """Whether a path is one of ours."""
        return path in self._files

    async def handle(self, exchange: Exchange) -> None:
        """Answer with the file."""
        content, kind = self._files[exchange.path]
        await respond(exchange, 200, content, kind, *_GUARDS)

"""What an operator may change of an endpoint while kinference runs: whether it drains."""

import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias
from urllib.parse import unquote

import msgspec

from kinference.control.errors import Missing
from kinference.dashboard.changes import Request, answer, body
from kinference.errors import InvalidArgument
from kinference.ids import Address
from kinference.wire.exchange import Exchange

ENDPOINTS = "/api/v1/endpoints"

Drain: TypeAlias = Callable[[Address, str, bool], Sequence[object]]
"""Begin or end the drain of the endpoints at an address, in all pools or the one that is named: what each is now."""

_log = logging.getLogger(__name__)


class EndpointUpdate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an endpoint is to become."""

    draining: bool
    pool: str = ""
    """`namespace/name`; "" for every pool that has the address."""


class EndpointsApi:
    """Answers everything under `/api/v1/endpoints/`."""

    def __init__(self, drain: Drain) -> None:
        self._drain = drain

    def serves(self, path: str) -> bool:
        """Whether a path is one of ours."""
        return path.startswith(f"{ENDPOINTS}/")

    async def handle(self, exchange: Exchange, asker: str) -> None:
        """Answer one request with JSON, refusals too. `asker` is who showed a token, "" where nobody has to."""
        await answer(exchange, asker, self._answer)

    async def _answer(self, request: Request) -> object:
        exchange = request.exchange
        if exchange.method != "PATCH":
            raise InvalidArgument(f"{exchange.path[:256]} does not know the method {exchange.method[:16]}; use PATCH")
        asked = await body(exchange, EndpointUpdate)
        address = Address(unquote(exchange.path.removeprefix(f"{ENDPOINTS}/")))
        changed = self._drain(address, asked.pool, asked.draining)
        if not changed:
            where = f" in pool {asked.pool[:128]}" if asked.pool else ""
            raise Missing(f"there is no endpoint {address[:128]}{where}; see: kinference endpoint list")
        what = "drains" if asked.draining else "drains no longer"
        _log.warning("%s %s", address, what, extra={"endpoint": address, "actor": request.actor})
        return {"endpoints": changed}

"""The task of a request: its handler is awaited, and its answer ends however that ends."""

import logging
from collections.abc import Awaitable

from kinference.errors import ClientGone
from kinference.wire.exchange import Handler
from kinference.wire.work import OwnWork, Visit, finish

_log = logging.getLogger(__name__)


async def handled(exchange: Visit, handler: Handler, handling: Awaitable[None] | None = None) -> None:
    """Answer a request, by what its handler has returned already where it has."""
    try:
        await (handling or handler(exchange))
        finish(exchange)
    except ClientGone:
        exchange.give_up(400)
    except Exception:  # noqa: BLE001 - the root of the request's task: one bad request must not take the server down
        _log.exception("handler failed: %s %s", exchange.method, exchange.path)
        exchange.give_up(500)
    finally:
        if not exchange.is_over:  # cancelled
            exchange.break_off()


async def gone_on(work: OwnWork, handler: Handler) -> None:
    """Await what is left of one that has come some way."""
    work.run()
    await handled(work.exchange, handler, work.course)

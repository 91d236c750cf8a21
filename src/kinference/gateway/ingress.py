"""The client's body on its way in, as it comes."""

from collections.abc import AsyncIterator

from kinference.errors import IdleTimeout
from kinference.gateway.headers import content_length
from kinference.gateway.held_body import HeldBody
from kinference.wire.exchange import Exchange
from kinference.wire.patience import Patience


async def receive(body: HeldBody, exchange: Exchange) -> None:
    """Take a body in as it comes. Raises BudgetExceeded at our limit and RetryLater at the picker's, at once when the
    declared length is over it, and IdleTimeout.
    """
    body.expect(content_length(exchange.headers) or 0)
    await _gather(exchange.body(), body)
    body.end()


async def _gather(chunks: AsyncIterator[bytes], body: HeldBody) -> None:
    idle = body.idle
    try:
        async with Patience(idle) as patience:
            async for chunk in chunks:
                body.add(chunk)
                patience.renew()
    except TimeoutError:
        raise IdleTimeout(f"request body stood still for {idle:g} s") from None

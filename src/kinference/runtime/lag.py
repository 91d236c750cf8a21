"""How late the event loop runs: the one figure that shows any work that holds it."""

import asyncio

from kinference.ids import Seconds
from kinference.observe.metrics import EVENT_LOOP_LAG, Metrics
from kinference.ports import Clock

INTERVAL: Seconds = 0.1


async def watch_lag(clock: Clock, metrics: Metrics) -> None:
    """Measure for ever how much later than asked a sleep ends."""
    while True:
        due = clock.now() + INTERVAL
        await asyncio.sleep(INTERVAL)
        metrics.time(EVENT_LOOP_LAG, max(0.0, clock.now() - due))

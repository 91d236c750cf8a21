import asyncio
from contextlib import suppress

from kinference.observe.metrics import Metrics
from kinference.runtime.clock import SystemClock
from kinference.runtime.lag import INTERVAL, watch_lag


async def test_lag_is_measured_until_cancelled() -> None:
    metrics = Metrics()
    with suppress(TimeoutError):
        async with asyncio.timeout(3.5 * INTERVAL):
            await watch_lag(SystemClock(), metrics)
    counts = [
        line
        for line in metrics.exposition().splitlines()
        if line.startswith(b"kinference_event_loop_lag_seconds_count")
    ]
    assert float(counts[0].split()[1]) >= 1

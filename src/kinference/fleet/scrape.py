"""The metrics of one endpoint, read from its engine's page."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from kinference.core.fleet import Endpoint, Fleet, Observation
from kinference.fleet.fetch import FETCH_FAULTS, PageLimits, fetch
from kinference.fleet.metrics import dynamo, llamacpp, sglang, triton, trtllm, vllm
from kinference.fleet.notice import Notice
from kinference.fleet.options import WatchOptions
from kinference.ids import Seconds
from kinference.ports import Clock, Upstream
from kinference.vocabulary import Engine

Reader: TypeAlias = Callable[[bytes, Seconds], Observation | None]

READERS: Mapping[Engine, tuple[str, Reader]] = {
    Engine.VLLM: ("/metrics", vllm.observe),
    Engine.SGLANG: ("/metrics", sglang.observe),
    Engine.TRTLLM: ("/prometheus/metrics", trtllm.observe),
    Engine.TRITON: ("/metrics", triton.observe),
    Engine.DYNAMO: ("/metrics", dynamo.observe),
    Engine.LLAMACPP: ("/metrics", llamacpp.observe),
}
"""Engines whose metrics we can read, and on which page; of the others nothing is asked."""

_OK = 200


class Scrape:
    """Reads one endpoint's metrics into the fleet. A failure leaves the last observation to age."""

    def __init__(
        self, fleet: Fleet, upstream: Upstream, clock: Clock, endpoint: Endpoint, options: WatchOptions
    ) -> None:
        self._fleet, self._upstream, self._clock, self._endpoint = fleet, upstream, clock, endpoint
        self._limits = PageLimits(options.scrape_timeout, options.page_bytes_max)
        self._notice = Notice(endpoint.spec)
        self.is_failing = False

    async def step(self) -> None:
        """One scrape, where there is anything to read."""
        known = READERS.get(self._endpoint.engine)
        if known is None or not self._endpoint.ready:
            return
        fault = await self._read(*known)
        self.is_failing = bool(fault)
        if fault:
            self._notice.problem(f"is routed to without fresh metrics: {fault}")
        else:
            self._notice.fine("tells its metrics")

    async def _read(self, path: str, reader: Reader) -> str:
        """What is wrong, "" when nothing is."""
        spec = self._endpoint.spec
        asked_at = self._clock.now()  # the page is at least as new as this
        try:
            page = await fetch(self._upstream, spec, path, self._limits)
        except FETCH_FAULTS as error:
            return str(error)
        if page.status != _OK:
            return f"{path} answered {page.status}"
        observation = reader(page.body, asked_at)
        if observation is None:
            return f"{path} has nothing of {self._endpoint.engine.value}"
        self._fleet.observe(spec.pool, spec.address, observation)
        return ""

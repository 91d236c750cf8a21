"""Readiness and model list of one endpoint, asked of the engine itself."""

from dataclasses import dataclass

from kinference.core.fleet import EndpointSpec, Fleet
from kinference.errors import NoConnectionLeft
from kinference.fleet.fetch import FETCH_FAULTS, Page, PageLimits, fetch
from kinference.fleet.model_list import MODELS_MAX, ModelList, read_model_list
from kinference.fleet.notice import Notice
from kinference.fleet.options import WatchOptions
from kinference.ids import Seconds
from kinference.ports import Clock, Upstream

_HEALTH, _MODELS = "/health", "/v1/models"
_OK = 200
_NO_SUCH_PAGE = (404, 405, 501)
MODELS_TOLD = 3
"""Names of a model list that a log line has room for."""


@dataclass(slots=True)
class Readiness:
    """Ready from the first success on; unready after so many failures in a row."""

    failures_max: int
    ready: bool = False
    failures: int = 0

    def succeeded(self) -> None:
        self.ready, self.failures = True, 0

    def failed(self) -> None:
        self.failures += 1
        if self.failures >= self.failures_max:
            self.ready = False


class Probe:
    """Asks one endpoint, and tells the fleet."""

    def __init__(
        self, fleet: Fleet, upstream: Upstream, clock: Clock, spec: EndpointSpec, options: WatchOptions
    ) -> None:
        self._fleet, self._upstream, self._clock, self._spec = fleet, upstream, clock, spec
        self._limits = PageLimits(options.probe_timeout, options.page_bytes_max)
        self._models_interval = options.models_interval
        self._models_due: Seconds = 0.0
        self._readiness = Readiness(options.failures_max)
        self._health_notice, self._models_notice = Notice(spec), Notice(spec)

    async def step(self) -> None:
        """One probe. A model list is read before its endpoint becomes ready, so that a ready one has its models."""
        try:
            fault = await self._health_fault()
        except NoConnectionLeft:
            return  # nothing was learned of it
        if fault:
            self._readiness.failed()
        else:
            if not self._readiness.ready or self._clock.now() >= self._models_due:
                await self._read_models()
            self._readiness.succeeded()
        ready = self._readiness.ready
        self._fleet.set_ready(self._spec.pool, self._spec.address, ready)
        if ready and not fault:
            self._health_notice.fine("is ready")
        elif not ready:
            self._health_notice.problem(f"is not ready: {fault}")

    async def _health_fault(self) -> str:
        """What is wrong, "" when nothing is. An engine without a health page is judged by its model list. Raises
        NoConnectionLeft.
        """
        try:
            path, page = _HEALTH, await self._fetch(_HEALTH)
            if page.status in _NO_SUCH_PAGE:
                path, page = _MODELS, await self._fetch(_MODELS)
        except NoConnectionLeft:
            raise
        except FETCH_FAULTS as error:
            return str(error)
        return "" if page.status == _OK else f"{path} answered {page.status}"

    async def _read_models(self) -> None:
        try:
            page = await self._fetch(_MODELS)
        except FETCH_FAULTS as error:
            self._no_models(str(error))
            return
        models = read_model_list(page.body) if page.status == _OK else None
        if models is None:
            self._no_models(
                f"{_MODELS} answered {page.status}" if page.status != _OK else f"{_MODELS} is no model list"
            )
            return
        self._models_due = self._clock.now() + self._models_interval
        pool, address = self._spec.pool, self._spec.address
        self._fleet.set_engine(pool, address, models.engine)
        self._fleet.set_models(pool, address, models.names, models.max_model_tokens, models.adapters)
        self._tell_of(models)

    def _tell_of(self, models: ModelList) -> None:
        if not models.names:
            self._no_models("its model list is empty")
        elif len(models.names) == MODELS_MAX:
            self._models_notice.problem(f"lists very many models: the first {MODELS_MAX} are used")
        else:
            names, more = ", ".join(models.names[:MODELS_TOLD]), len(models.names) - MODELS_TOLD
            also = f" and {more} more" if more > 0 else ""
            self._models_notice.fine(f"serves {names}{also} on {models.engine.value}")

    def _no_models(self, why: str) -> None:
        """A pool whose configuration names its models can do without the engine's list."""
        if self._spec.models is None:
            self._models_notice.problem(f"has no models to route to ({why}); name them in the pool's `models`")

    async def _fetch(self, path: str) -> Page:
        return await fetch(self._upstream, self._spec, path, self._limits)

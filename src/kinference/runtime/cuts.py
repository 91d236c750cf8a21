"""What had no room within bounds that nobody can configure, shown beside the rest."""

from kinference.core.fleet import Fleet
from kinference.core.pick import Router
from kinference.fleet.model_list import MODELS_MAX
from kinference.observe.metrics import CUT_SHORT, MODELS_FORGOTTEN, Metrics


def publish_cuts(fleet: Fleet, router: Router, metrics: Metrics) -> None:
    """Show it as it is now."""
    endpoints = fleet.endpoints()
    metrics.gauge(CUT_SHORT, sum(len(endpoint.models) >= MODELS_MAX for endpoint in endpoints), "models")
    seen = [endpoint.observation for endpoint in endpoints if endpoint.observation is not None]
    metrics.gauge(CUT_SHORT, sum(observation.is_cut for observation in seen), "metrics")
    metrics.count(MODELS_FORGOTTEN, amount=router.take_forgotten())

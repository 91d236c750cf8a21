"""What the gateway looks up: which names clients may ask for, and where an endpoint is."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kinference.core.fleet import Endpoint, Fleet
from kinference.core.policy import ModelRule
from kinference.core.rulebook import is_glob
from kinference.gateway.backends import EndpointRoute, ServedModel
from kinference.ids import Address

ANY_MODEL: Final = ServedModel("*", is_glob=True)
"""What a pool may serve of which no endpoint has told yet: a name asked for meanwhile is not unknown."""


def served_models(fleet: Fleet, rules: Iterable[ModelRule]) -> tuple[ServedModel, ...]:
    """Every known name once, in order; also those that nobody can serve at this moment, which are not unknown."""
    models: dict[str, ServedModel] = {}
    for model in _known(fleet, rules):
        models.setdefault(model.id, model)
    return tuple(models[name] for name in sorted(models))


def _known(fleet: Fleet, rules: Iterable[ModelRule]) -> Iterator[ServedModel]:
    for rule in rules:
        yield ServedModel(rule.pattern, is_glob=is_glob(rule.pattern))
    for endpoint in fleet.endpoints():
        yield from (ServedModel(name, owned_by=endpoint.engine.value) for name in endpoint.models)
    told = {endpoint.spec.pool for endpoint in fleet.endpoints() if endpoint.models}
    if any(pool not in told for pool in fleet.pools()):
        yield ANY_MODEL
    for backend in fleet.backends():
        yield from (ServedModel(name, owned_by=str(backend.ref)) for name in backend.models)


class FleetDirectory:
    """Both look-ups for one set of rules, made anew only after the fleet has changed."""

    def __init__(self, fleet: Fleet, rules: Sequence[ModelRule]) -> None:
        self._fleet, self._rules = fleet, rules
        self._version = -1
        self._models: Sequence[ServedModel] = ()
        self._routes: Mapping[Address, EndpointRoute] = {}

    def models(self) -> Sequence[ServedModel]:
        """The names, as they are now."""
        self._follow()
        return self._models

    def locate(self, address: Address) -> EndpointRoute | None:
        """How to reach an endpoint; None once it has left the fleet."""
        self._follow()
        return self._routes.get(address)

    def _follow(self) -> None:
        if self._version == self._fleet.version:
            return
        self._version = self._fleet.version
        self._models = served_models(self._fleet, self._rules)
        self._routes = {endpoint.spec.address: _route(endpoint) for endpoint in self._fleet.endpoints()}


def _route(endpoint: Endpoint) -> EndpointRoute:
    spec = endpoint.spec
    return EndpointRoute(f"{spec.scheme}://{spec.address}", spec.path_prefix, endpoint.engine.extends_chat)

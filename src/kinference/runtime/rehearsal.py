"""A decision tried out: the configured router and fleet, told of a state instead of finding it, and asked once."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random

import msgspec

from kinference.config.schema import Config
from kinference.core.fleet import EndpointSpec, Fleet, Observation
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules
from kinference.ids import Address, ObjectRef, StreamId
from kinference.picker.choosing import Chosen, choose
from kinference.ports import PickArguments
from kinference.runtime.rules import apply, routing_rules, template_of
from kinference.vocabulary import QosClass


class EndpointState(msgspec.Struct, frozen=True):
    """What the admin port's list of endpoints says of one, as far as it can be told to a router anew."""

    pool: str
    address: str
    ready: bool = True
    draining: bool = False
    models: tuple[str, ...] = ()
    waiting: int | None = None
    running: int | None = None
    kv_usage_ratio: float | None = None


class FleetState(msgspec.Struct, frozen=True):
    """The admin port's answer."""

    endpoints: tuple[EndpointState, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One request as the picker would get it."""

    body: bytes
    path: str
    tenant: str = ""
    qos: QosClass = QosClass.INTERACTIVE
    seed: int = 0


def rehearse(config: Config, state: Iterable[EndpointState] | None, question: Question) -> Chosen:
    """What would be decided. Without a state all endpoints are idle and serve whatever they are asked for.

    Where nothing names any pool, or a pool is discovered, its endpoints are what the state lists: as of a router that
    was told of engines by flags, or found them.
    """
    fleet = Fleet()
    rules = routing_rules(config)
    router = Router(fleet, rules, Random(question.seed))
    apply(config, router, fleet)
    if state is not None:
        state = tuple(state)
        _discovered(fleet, config, state)
        if not config.pools:
            _found(fleet, state)
    for one in _idle(fleet, rules, question) if state is None else state:
        _tell(fleet, one)
    arguments = PickArguments(StreamId(0), question.tenant, qos=question.qos, request_path=question.path)
    return choose(router, arguments, question.body, 0.0)


def _discovered(fleet: Fleet, config: Config, state: Iterable[EndpointState]) -> None:
    for pool in config.pools:
        if pool.discovery is not None:
            template, name = template_of(pool), str(pool.ref)
            present = [replace(template, address=Address(one.address)) for one in state if one.pool == name]
            fleet.set_pool(pool.ref, present)


def _found(fleet: Fleet, state: Iterable[EndpointState]) -> None:
    pools: dict[str, list[EndpointSpec]] = {}
    for one in state:
        pools.setdefault(one.pool, []).append(EndpointSpec(_ref(one.pool), Address(one.address)))
    for name, endpoints in pools.items():
        fleet.set_pool(_ref(name), endpoints)


def _ref(pool: str) -> ObjectRef:
    namespace, _, name = pool.rpartition("/")
    return ObjectRef(namespace, name)


def _idle(fleet: Fleet, rules: RoutingRules, question: Question) -> list[EndpointState]:
    asked = choose(Router(Fleet(), RoutingRules(), Random(0)), _bare(question), question.body, 0.0).requested_model
    named = {target.model for rule in rules.models for target in rule.targets if target.model}
    models = tuple(sorted({asked, *named}))
    return [EndpointState(str(one.spec.pool), one.spec.address, models=models) for one in fleet.endpoints()]


def _bare(question: Question) -> PickArguments:
    return PickArguments(StreamId(0), "", request_path=question.path)


def _tell(fleet: Fleet, state: EndpointState) -> None:
    for endpoint in fleet.endpoints():
        pool, address = endpoint.spec.pool, endpoint.spec.address
        if (str(pool), address) == (state.pool, state.address):
            fleet.set_models(pool, address, state.models)
            fleet.set_ready(pool, address, state.ready)
            fleet.set_draining(pool, address, state.draining)
            if state.running is not None:
                seen = Observation(0.0, state.waiting or 0, state.running, state.kv_usage_ratio)
                fleet.observe(pool, address, seen)

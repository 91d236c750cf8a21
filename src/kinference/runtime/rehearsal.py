"""A decision tried out: the configured router and fleet, told of a state instead of finding it, and asked once."""

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

import msgspec

from kinference.config.schema import Config
from kinference.core.fleet import Fleet, Observation
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules
from kinference.ids import StreamId
from kinference.picker.choosing import Chosen, choose
from kinference.ports import PickArguments
from kinference.runtime.rules import apply, routing_rules
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
    """What would be decided. Without a state all endpoints are idle and serve whatever they are asked for."""
    fleet = Fleet()
    rules = routing_rules(config)
    router = Router(fleet, rules, Random(question.seed))
    apply(config, router, fleet)
    for one in _idle(fleet, rules, question) if state is None else state:
        _tell(fleet, one)
    arguments = PickArguments(StreamId(0), question.tenant, qos=question.qos, request_path=question.path)
    return choose(router, arguments, question.body, 0.0)


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

"""The filters: who may not serve a request, for which cause, and what would help."""

from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from kinference.core.policy import TenantRule
from kinference.core.request import Request
from kinference.core.roster import Destination
from kinference.core.rulebook import may_go
from kinference.vocabulary import Api, Engine

OPENAI_APIS: Final = frozenset({Api.OPENAI_CHAT, Api.OPENAI_RESPONSES, Api.OPENAI_COMPLETIONS, Api.OPENAI_EMBEDDINGS})
ENGINE_APIS: Final[dict[Engine, frozenset[Api]]] = {
    Engine.AUTO: OPENAI_APIS | {Api.ANTHROPIC_MESSAGES},
    Engine.VLLM: OPENAI_APIS | {Api.ANTHROPIC_MESSAGES},
    Engine.SGLANG: OPENAI_APIS | {Api.ANTHROPIC_MESSAGES},
    Engine.TRTLLM: OPENAI_APIS,
    Engine.TRITON: OPENAI_APIS,
    Engine.DYNAMO: OPENAI_APIS,
    Engine.LLAMACPP: OPENAI_APIS,
    Engine.OPENAI: OPENAI_APIS,
}


class Verdict(Enum):
    """Why a destination was removed, and what would help. In the order of the filters."""

    NOT_SERVED = ("without the model", "load it on an engine or route it under `models`")
    WRONG_API = ("of another API", "call an API that it speaks")
    LACKS = ("lacking", "ask without it, or route to a model that can")
    NOT_READY = ("not ready", "check that the engine is up and answers /health")
    DRAINING = ("draining", "end the drain or add an endpoint")
    FORBIDDEN = ("closed to the tenant", "extend the tenant's `destinations`")
    UNPRICED = ("of unknown price", "give the backend `prices`, for the tenant's rule minds money")
    OVER_BUDGET = ("over the tenant's budget", "raise its `usd_per_month`")
    TOO_LONG = ("with too short a context", "shorten the prompt or serve the model with more context")
    FAILED = ("that failed this request", "send it again later")
    TRIPPED = ("with an open circuit", "see its failures; it is tried again on its own")

    @property
    def cause(self) -> str:
        """What is wrong with it."""
        return self.value[0]

    @property
    def remedy(self) -> str:
        """What would help."""
        return self.value[1]


@dataclass(frozen=True, slots=True)
class Question:
    """May this destination serve a tenant's request, asked for `model`? None: it has no such name."""

    request: Request
    rule: TenantRule | None
    destination: Destination
    model: str | None


class Filter(Protocol):
    """Removes destinations. Looks at what changes with the fleet's version and the rules alone: it is asked once."""

    def verdict(self, question: Question) -> Verdict | None:
        """Why it may not, None when it may."""
        ...


@dataclass(frozen=True, slots=True)
class ServesModel:
    """Keeps who has the model. An engine that never was ready has not told its models: that is the cause to name."""

    def verdict(self, question: Question) -> Verdict | None:
        endpoint = question.destination.endpoint
        if question.model is None:
            return Verdict.NOT_SERVED
        if endpoint is None or question.model in endpoint.models:
            return None
        return Verdict.NOT_SERVED if endpoint.models or endpoint.ready else Verdict.NOT_READY


@dataclass(frozen=True, slots=True)
class SpeaksApi:
    """Keeps who speaks the request's API, or one that it can be translated to."""

    def verdict(self, question: Question) -> Verdict | None:
        request, destination = question.request, question.destination
        if destination.backend is not None:
            api = destination.backend.api
            speaks = api.speaks(request.api) or api in request.reaches
        elif destination.endpoint is not None:
            api = request.api.at_engines
            speaks = api in ENGINE_APIS[destination.endpoint.engine] and (api is request.api or api in request.reaches)
            speaks = speaks or Api.OPENAI_CHAT in request.reaches
        else:
            speaks = True
        return None if speaks else Verdict.WRONG_API


@dataclass(frozen=True, slots=True)
class HasNeeds:
    """Keeps who is not known to lack what the request needs."""

    def verdict(self, question: Question) -> Verdict | None:
        needs, model = question.request.needs, question.model
        return Verdict.LACKS if needs and model is not None and question.destination.lacks(model, needs) else None


@dataclass(frozen=True, slots=True)
class IsReady:
    """Keeps endpoints whose readiness probe succeeds."""

    def verdict(self, question: Question) -> Verdict | None:
        endpoint = question.destination.endpoint
        return None if endpoint is None or endpoint.ready else Verdict.NOT_READY


@dataclass(frozen=True, slots=True)
class NotDraining:
    """Keeps endpoints that take new work."""

    def verdict(self, question: Question) -> Verdict | None:
        endpoint = question.destination.endpoint
        return None if endpoint is None or not endpoint.draining else Verdict.DRAINING


@dataclass(frozen=True, slots=True)
class OpenToTenant:
    """Keeps the pools and backends that the tenant's rule lets it use."""

    def verdict(self, question: Question) -> Verdict | None:
        return None if may_go(question.rule, question.destination.ref) else Verdict.FORBIDDEN


@dataclass(frozen=True, slots=True)
class HasPrice:
    """Keeps destinations of known price, where the tenant's rule minds money: no unknown price counts as none."""

    def verdict(self, question: Question) -> Verdict | None:
        if question.rule is None or not question.rule.minds_money or question.model is None:
            return None
        return Verdict.UNPRICED if question.destination.price(question.model) is None else None


FILTERS: Final[tuple[Filter, ...]] = (
    ServesModel(),
    SpeaksApi(),
    HasNeeds(),
    IsReady(),
    NotDraining(),
    OpenToTenant(),
    HasPrice(),
)
"""The tenant's own limits come last: only who could serve is refused by policy, the rest is missing capacity."""


def screen(question: Question) -> Verdict | None:
    """The verdict of the first filter that removes the destination, None when it may serve."""
    for one in FILTERS:
        verdict = one.verdict(question)
        if verdict is not None:
            return verdict
    return None

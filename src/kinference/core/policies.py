"""Policies by name: which cost terms, which chooser. Ours, and those of others for comparison, from the same parts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from math import isfinite

from kinference.core.choose import AnyOne, Cheapest, InTurn, LesserOfTwo
from kinference.core.cost import Base, InFlight, Interference, Prefill, QueueWait, Risk, SlotWait
from kinference.core.rivals.policies import RIVALS
from kinference.core.scoring import Policy, Scoring
from kinference.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ExpectedLatency:
    """The least expected milliseconds, the harm done to others included."""

    lambda_itl: float = field(
        default=0.02, metadata={"help": "what stalling one who decodes there for 1 ms counts while engines have pauses"}
    )
    lambda_crowd: float = field(
        default=1.5, metadata={"help": "what keeping an engine from later prompts for 1 ms counts while none is free"}
    )
    band: float = field(
        default=0.05, metadata={"help": "near-equal costs, as a share of the request's own work, are chosen at random"}
    )
    batch_patience: float = field(default=0.1, metadata={"help": "what a millisecond of waiting counts for batch work"})

    def scoring(self) -> Scoring:
        harm = Interference(self.lambda_itl, self.lambda_crowd)
        return Scoring(
            terms=(Base(), QueueWait(begun=True), SlotWait(), Prefill(), harm, Risk()),
            batch_terms=(QueueWait(self.batch_patience, begun=True), SlotWait(), Prefill(), harm, Risk()),
            chooser=Cheapest(self.band),
            in_milliseconds=True,
            harm=harm,
        )


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """Each endpoint in its turn, whatever its load."""

    def scoring(self) -> Scoring:
        return Scoring((), (), InTurn(), by_prefix=False)


@dataclass(frozen=True, slots=True)
class Uniform:
    """Any endpoint at random, by weight."""

    def scoring(self) -> Scoring:
        return Scoring((), (), AnyOne(), by_prefix=False)


@dataclass(frozen=True, slots=True)
class LeastRequest:
    """The fewest requests waiting and running, ties at random (Envoy's and nginx's least-connections rule)."""

    def scoring(self) -> Scoring:
        return Scoring((InFlight(),), (InFlight(),), Cheapest(), by_prefix=False)


@dataclass(frozen=True, slots=True)
class PowerOfTwo:
    """The lesser loaded of two at random (Mitzenmacher, The Power of Two Choices, 2001; linkerd's default)."""

    def scoring(self) -> Scoring:
        return Scoring((InFlight(),), (InFlight(),), LesserOfTwo(), by_prefix=False)


POLICIES: Mapping[str, Callable[..., Policy]] = {
    "expected_latency": ExpectedLatency,
    "round_robin": RoundRobin,
    "random": Uniform,
    "least_request": LeastRequest,
    "power_of_two": PowerOfTwo,
    **RIVALS,
}


def make_policy(name: str, parameters: Mapping[str, float]) -> Policy:
    """The named policy with these parameters. Raises ConfigError for an unknown one, naming the nearest."""
    kind = POLICIES.get(name)
    if kind is None:
        raise ConfigError("routing.policy", f"no policy named {name!r}", _nearest(name, list(POLICIES)))
    known = [parameter.name for parameter in fields(kind())]
    for parameter, value in parameters.items():
        where = f"routing.parameters.{parameter}"
        if parameter not in known:
            raise ConfigError(where, f"policy {name!r} has no parameter {parameter!r}", _nearest(parameter, known))
        if not isfinite(value) or value < 0:
            raise ConfigError(where, f"must be a number of at least 0, not {value}")
    return kind(**parameters)


def _nearest(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"choose from {', '.join(known)}" if known else "it takes none"

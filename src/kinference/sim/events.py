"""What the model of an engine takes and tells: a request, and the events that its life is made of."""

from dataclasses import dataclass
from typing import TypeAlias

from kinference.ids import Seconds
from kinference.sim.kv_cache import BlockHash


@dataclass(frozen=True, slots=True)
class SimRequest:
    """A request as the model sees it: lengths, and the names of its full blocks.

    `blocks` may run on into the output, whose blocks become part of the cache as they fill; blocks past its end stay
    nameless and are never hit.
    """

    id: int
    prompt_tokens: int
    output_tokens: int
    blocks: tuple[BlockHash, ...] = ()

    def __post_init__(self) -> None:
        assert self.prompt_tokens >= 1, "there is no prompt without a token"
        assert self.output_tokens >= 0, "0 asks for the prompt's pass alone, as an embedding does"


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request left the queue for the first time."""

    at: Seconds
    request: int
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class FirstToken:
    at: Seconds
    request: int


@dataclass(frozen=True, slots=True)
class NextTokens:
    """One more token for each of these."""

    at: Seconds
    requests: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    at: Seconds
    request: int


@dataclass(frozen=True, slots=True)
class Preempted:
    """A running request lost its blocks and waits again; what it has said so far stays said."""

    at: Seconds
    request: int


@dataclass(frozen=True, slots=True)
class BlocksStored:
    """Blocks `first` to `first + count` of a request's chain are in the cache now, and were not before."""

    at: Seconds
    request: int
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class BlocksRemoved:
    at: Seconds
    blocks: tuple[BlockHash, ...]


Event: TypeAlias = Admitted | FirstToken | NextTokens | Finished | Preempted | BlocksStored | BlocksRemoved

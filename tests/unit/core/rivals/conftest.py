"""Cases for the rules of others."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pytest

from kinference.core.cost import Case
from kinference.core.ledger import Load
from kinference.core.policy import TargetKind
from kinference.core.rates import Line, Rates, Typical
from kinference.core.roster import Destination
from kinference.ids import ObjectRef

PROMPT_TOKENS = 1_000
MakeCase: TypeAlias = Callable[..., Case]


@pytest.fixture
def make_case() -> MakeCase:
    """Equal endpoints at a tenth of a millisecond a token; columns that are not named are zeros."""

    def make(hits: Sequence[int], ahead: Sequence[float] = (), beside: Sequence[float] = (), key: int = 1) -> Case:
        places = range(len(hits))
        ref = ObjectRef("default", "pool")
        destinations = [Destination(TargetKind.POOL, ref, f"h{place}") for place in places]
        rates = [Rates(Typical(Line(10.0, 0.1))) for _ in places]
        uncached = [PROMPT_TOKENS - hit for hit in hits]
        return Case(
            destinations,
            [one.name for one in destinations],
            rates,
            [Load() for _ in places],
            circuits=[one.circuit for one in destinations],
            bases=[one.base_ms for one in rates],
            slopes=[0.1] * len(hits),
            ahead=list(ahead) or [0.0] * len(hits),
            beside=list(beside) or [0.0] * len(hits),
            left=[0.1 * tokens for tokens in ahead or [0.0] * len(hits)],
            hung={},
            hits=list(hits),
            uncached=uncached,
            work=[0.1 * tokens for tokens in uncached],
            output_tokens=200,
            fitting=places,
            now=0.0,
            turn=0,
            key=key,
        )

    return make

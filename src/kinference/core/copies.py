"""When a prefix is worth one more copy: what those that begin alike have lost for want of it pays for it.

For each by itself the warm engine is best while computing the prefix elsewhere takes longer than is lost there, and so
all would gather where the first one went. How many more will come nobody knows, so a copy is bought as skis are that
may be rented (Karlin et al. 1988): each that goes where the prefix is adds what it lost by that against each engine
which would have served it sooner with the prefix at hand, or takes off what it gained. When that has come to the price
of a copy there, one is made: whatever comes then, not much more than twice the least possible was paid. A copy serves
its share of those to come, beside the engines that have the prefix already, so no more than that of a loss counts.
"""

from collections.abc import Sequence
from itertools import repeat
from operator import sub
from typing import Final

from kinference.core.candidates import Group
from kinference.core.cost import Case, Interference
from kinference.core.decision import Weighed
from kinference.core.weigh import Prompt, Weighing
from kinference.ids import Milliseconds
from kinference.structs import EntityLeaf

COPY: Final = "copy"
"""The column of what has been paid of the work for a prefix that others have cached."""
LOSSES_MAX: Final = 1 << 16
"""So many are remembered over all prefixes and engines; those of the prefix used longest ago go first."""


class _Prefix(EntityLeaf):
    """The longest cached prefix of a prompt that not all have."""

    key: int
    """Its last block; 0 where there is no such prefix."""
    held: Sequence[float] = ()
    """How much of it each place has."""
    prices: list[Milliseconds] | None = None
    """What a copy costs at each place, once somebody has asked."""


class Copies:
    """What has been lost for want of a copy at each place, by the last block of what is cached elsewhere."""

    def __init__(self) -> None:
        self._lost: dict[int, dict[str, Milliseconds]] = {}
        self._losses = 0
        self._weighed: Case | None = None
        self._found = _Prefix(0)
        """Of that case: whoever is weighed mostly goes at once."""

    def __len__(self) -> int:
        """How many losses are remembered."""
        return self._losses

    def paid(self, prompt: Prompt, group: Group, case: Case, harm: Interference) -> list[Milliseconds] | None:
        """What has been paid of a copy at each place, as what it takes off the cost there; None where nothing has."""
        found = self._prefix(prompt, group, case)
        lost = self._lost.get(found.key) if found.key else None
        if lost is None:
            return None
        column = []
        for name, price in zip(case.names, _prices(case, found, harm), strict=True):
            loss = lost.get(name, 0.0)
            column.append(0.0 - (loss if loss < price else price))
        return column

    def learn(self, weighing: Weighing, harm: Interference) -> None:
        """It goes to the chosen place: a copy made there is paid for, and what is lost for want of another counts."""
        case, chosen = weighing.case, weighing.weighed.chosen
        found = self._prefix(weighing.prompt, weighing.group, case)
        if not found.key:
            return
        lost = self._lost.pop(found.key, {})
        self._losses -= len(lost)
        if found.held[chosen] < 1.0:
            spent = lost.get(case.names[chosen], 0.0)
            lost = {name: loss - spent for name, loss in lost.items() if loss > spent}
        else:
            share = 1.0 / (1.0 + sum(found.held))
            costs = _with_copy(weighing.weighed, _prices(case, found, harm))
            for place, part in enumerate(found.held):
                if part < 1.0:
                    _add(lost, case.names[place], share * (costs[chosen] - costs[place]))
        self._keep(found.key, lost)

    def _prefix(self, prompt: Prompt, group: Group, case: Case) -> _Prefix:
        if case is not self._weighed:
            self._weighed, self._found = case, _prefix(prompt, group)
        return self._found

    def _keep(self, key: int, lost: dict[str, Milliseconds]) -> None:
        if lost:
            self._lost[key] = lost
            self._losses += len(lost)
        while self._losses > LOSSES_MAX:
            self._losses -= len(self._lost.pop(next(iter(self._lost))))


def _add(lost: dict[str, Milliseconds], name: str, loss: Milliseconds) -> None:
    """One more loss; what was gained makes up for former ones, and is no claim on later ones."""
    loss += lost.get(name, 0.0)
    if loss > 0.0:
        lost[name] = loss
    else:
        lost.pop(name, None)


def _prefix(prompt: Prompt, group: Group) -> _Prefix:
    """As it was when the same was asked last, if nobody has come to hold more or less since."""
    known = prompt.shared
    if known is None or known[0] is not group:
        known = prompt.shared = _shared(prompt, group)
    return _Prefix(known[1], known[2])


def _shared(prompt: Prompt, group: Group) -> tuple[Group, int, Sequence[float]]:
    """None is told where a backend competes: nobody knows what it has."""
    if len(prompt.depths) == 1 and len(group.slots) > 1:
        for model, depths in prompt.depths.items():
            if not depths:
                break
            held = list(map(depths.get, group.slots, repeat(0)))
            deepest = max(held)
            if min(held) < deepest and min(group.slots) >= 0:
                return group, prompt.blocks[model][deepest - 1], [depth / deepest for depth in held]
    return group, 0, ()


def _prices(case: Case, found: _Prefix, harm: Interference) -> Sequence[Milliseconds]:
    """What it costs at each place to compute what another one has cached, the harm done by it included."""
    if found.prices is None:
        least, shares, slopes = min(case.uncached), harm.shares(case), case.slopes
        found.prices = prices = [0.0] * len(shares)
        for place, part in enumerate(found.held):
            if part < 1.0:
                prices[place] = (case.work[place] - slopes[place] * least) * (1.0 + shares[place])
    return found.prices


def _with_copy(weighed: Weighed, prices: Sequence[Milliseconds]) -> list[Milliseconds]:
    """What each place would cost if all had the prefix."""
    costs = list(map(sub, weighed.totals, prices))
    name, paid = weighed.columns[-1]  # it was added last, if at all
    return list(map(sub, costs, paid)) if name == COPY else costs

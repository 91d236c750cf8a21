"""When a prefix is worth one more copy: what those that begin alike have lost for want of it pays for it.

For each by itself the warm engine is best while computing the prefix elsewhere takes longer than is lost there, and so
all would gather where the first one went. How many more will come nobody knows, so a copy is bought as skis are that
may be rented (Karlin et al. 1988): each that goes where the prefix is adds what it lost by that against each engine
which would have served it sooner with the prefix at hand, or takes off what it gained. When that has come to the price
of a copy there, one is made: whatever comes then, not much more than twice the least possible was paid. A copy serves
its share of those to come, beside the engines that have the prefix already, so no more than that of a loss counts.
"""

from collections.abc import Sequence

from kinference.core.candidates import Group
from kinference.core.cost import Case, Interference
from kinference.core.weigh import Prompt, Weighing
from kinference.ids import Milliseconds

COPY = "copy"
"""The column of what has been paid of the work for a prefix that others have cached."""
LOSSES_MAX = 1 << 16
"""So many are remembered over all prefixes and engines; those of the prefix used longest ago go first."""


class Copies:
    """What has been lost for want of a copy at each place, by the last block of what is cached elsewhere."""

    def __init__(self) -> None:
        self._lost: dict[int, dict[str, Milliseconds]] = {}
        self._losses = 0

    def __len__(self) -> int:
        """How many losses are remembered."""
        return self._losses

    def paid(self, prompt: Prompt, group: Group, case: Case, harm: Interference) -> list[Milliseconds] | None:
        """What has been paid of a copy at each place, as what it takes off the cost there; None where nothing has."""
        key, held = _prefix(prompt, group)
        lost = self._lost.get(key) if key else None
        if lost is None:
            return None
        prices = _prices(case, held, harm)
        return [0.0 - min(lost.get(name, 0.0), price) for name, price in zip(case.names, prices, strict=True)]

    def learn(self, weighing: Weighing, harm: Interference) -> None:
        """It goes to the chosen place: a copy made there is paid for, and what is lost for want of another counts."""
        key, held = _prefix(weighing.prompt, weighing.group)
        if not key:
            return
        case, chosen = weighing.case, weighing.weighed.chosen
        lost = self._lost.pop(key, {})
        self._losses -= len(lost)
        if held[chosen] < 1.0:
            spent = lost.get(case.names[chosen], 0.0)
            lost = {name: loss - spent for name, loss in lost.items() if loss > spent}
        else:
            share = 1.0 / (1.0 + sum(held))
            costs = _with_copy(weighing, _prices(case, held, harm))
            for name, cost, part in zip(case.names, costs, held, strict=True):
                if part < 1.0:
                    _add(lost, name, share * (costs[chosen] - cost))
        self._keep(key, lost)

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


def _prefix(prompt: Prompt, group: Group) -> tuple[int, list[float]]:
    """The last block of the longest cached prefix, and how much of it each place has; 0 where none or all have it.

    Where a backend competes none is told: nobody knows what it has.
    """
    if len(prompt.depths) == 1 and min(group.slots) >= 0:
        for model, depths in prompt.depths.items():
            held = [depths.get(slot, 0) for slot in group.slots]
            deepest = max(held)
            if deepest and min(held) < deepest:
                return prompt.blocks[model][deepest - 1], [depth / deepest for depth in held]
    return 0, []


def _prices(case: Case, held: Sequence[float], harm: Interference) -> list[Milliseconds]:
    """What it costs at each place to compute what another one has cached, the harm done by it included."""
    least = min(case.uncached)
    return [
        (work - slope * least) * (1.0 + share) if part < 1.0 else 0.0
        for work, slope, share, part in zip(case.work, case.slopes, harm.shares(case), held, strict=True)
    ]


def _with_copy(weighing: Weighing, prices: Sequence[Milliseconds]) -> list[Milliseconds]:
    """What each place would cost if all had the prefix."""
    weighed = weighing.weighed
    costs = [total - price for total, price in zip(weighed.totals, prices, strict=True)]
    for name, column in weighed.columns:
        if name == COPY:
            costs = [cost - paid for cost, paid in zip(costs, column, strict=True)]
    return costs

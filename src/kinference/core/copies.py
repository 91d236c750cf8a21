"""When a prefix is worth one more copy: what those that begin alike have lost for want of it pays for it.

For each by itself the warm engine is best while computing the prefix elsewhere takes longer than is lost there, and so
all would gather where the first one went. How many more will come nobody knows, so a copy is bought as skis are that
may be rented (Karlin et al. 1988): each that goes where the prefix is adds what it lost by that against each engine
which would have served it sooner with the prefix at hand, or takes off what it gained. When that has come to the price
of a copy there, one is made: whatever comes then, not much more than twice the least possible was paid. A copy serves
its share of those to come, beside the engines that have the prefix already, so no more than that of a loss counts.
"""

from typing import Final

from kinference.core.candidates import Group
from kinference.core.cost import Case, Interference
from kinference.core.decision import Weighed
from kinference.core.weigh import Prompt
from kinference.ids import Milliseconds

COPY: Final = "copy"
"""The column of what has been paid of the work for a prefix that others have cached."""
LOSSES_MAX: Final = 1 << 16
"""So many are remembered over all prefixes and engines; those of the prefix used longest ago go first."""


class Copies:
    """What has been lost for want of a copy at each place, by the last block of what is cached elsewhere."""

    def __init__(self) -> None:
        self._lost: dict[int, dict[str, Milliseconds]] = {}
        self._losses = 0
        self._case: Case | None = None
        """Whoever is weighed mostly goes at once: what was found of it is at hand when it does."""
        self._key = 0
        """The last block of the longest cached prefix of its prompt that not all have; 0 without one."""
        self._held: list[float] = []
        """How much of it each place has."""
        self._prices: list[Milliseconds] | None = None
        """What a copy costs at each place, once somebody has asked."""

    def __len__(self) -> int:
        """How many losses are remembered."""
        return self._losses

    def paid(self, prompt: Prompt, group: Group, case: Case, harm: Interference) -> list[Milliseconds] | None:
        """What has been paid of a copy at each place, as what it takes off the cost there; None where nothing has."""
        if case is not self._case:
            self._find(prompt, group, case)
        lost = self._lost.get(self._key) if self._key else None
        if lost is None:
            return None
        column, prices = [], self._priced(case, harm)
        for place, name in enumerate(case.names):
            loss, price = lost.get(name, 0.0), prices[place]
            column.append(0.0 - (loss if loss < price else price))
        return column

    def learn(self, prompt: Prompt, group: Group, case: Case, weighed: Weighed, harm: Interference) -> None:
        """It goes to the chosen place: a copy made there is paid for, and what is lost for want of another counts."""
        if case is not self._case:
            self._find(prompt, group, case)
        key, held = self._key, self._held
        if not key:
            return
        names, chosen = case.names, weighed.chosen
        lost = self._lost.get(key)
        if lost is None:
            lost = {}
        else:
            del self._lost[key]
            self._losses -= len(lost)
        if held[chosen] < 1.0:
            spent = lost.get(names[chosen], 0.0)
            lost = {name: loss - spent for name, loss in lost.items() if loss > spent}
        else:
            costs, copies = _with_copy(weighed, self._priced(case, harm)), 0.0
            for part in held:
                copies += part
            share, cost = 1.0 / (1.0 + copies), costs[chosen]
            for place, part in enumerate(held):
                if part < 1.0:
                    _add(lost, names[place], share * (cost - costs[place]))
        self._keep(key, lost)

    def _find(self, prompt: Prompt, group: Group, case: Case) -> None:
        """As it was when the same was asked last, if nobody has come to hold more or less since."""
        known = prompt.shared
        if known is None or known[0] is not group:
            known = prompt.shared = _shared(prompt, group)
        self._case, self._prices = case, None
        _, self._key, self._held = known

    def _priced(self, case: Case, harm: Interference) -> list[Milliseconds]:
        """What it costs at each place to compute what another one has cached, the harm done by it included."""
        prices = self._prices
        if prices is None:
            least, prices, slopes, works = min(case.uncached), harm.shares(case), case.slopes, case.work
            for place, part in enumerate(self._held):
                whole = works[place] - slopes[place] * least
                prices[place] = whole * (1.0 + prices[place]) if part < 1.0 else 0.0
            self._prices = prices
        return prices

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


def _shared(prompt: Prompt, group: Group) -> tuple[Group, int, list[float]]:
    """None is told where a backend competes: nobody knows what it has."""
    all_depths, slots = prompt.depths, group.slots
    if len(all_depths) == 1 and len(slots) > 1:
        for model, depths in all_depths.items():
            if not depths:
                break
            held = [depths.get(slot, 0) for slot in slots]
            deepest = max(held)
            if min(held) < deepest and min(slots) >= 0:
                return group, prompt.blocks[model][deepest - 1], [depth / deepest for depth in held]
    return group, 0, []


def _with_copy(weighed: Weighed, prices: list[Milliseconds]) -> list[Milliseconds]:
    """What each place would cost if all had the prefix."""
    costs = [total - prices[place] for place, total in enumerate(weighed.totals)]
    name, paid = weighed.columns[-1]  # it was added last, if at all
    return [cost - paid[place] for place, cost in enumerate(costs)] if name == COPY else costs

"""Who may serve a request: targets by priority and weight, and the filters, each with its verdict and its remedy."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, groupby
from math import log
from typing import Final

from xxhash import xxh3_64_intdigest

from kinference.core.decision import BackendChoice, EndpointChoice, Rejected
from kinference.core.filters import Question, Verdict, screen
from kinference.core.fleet import PrefixSignal
from kinference.core.health import Circuit
from kinference.core.ledger import Load
from kinference.core.policy import Target, TenantRule
from kinference.core.prefix.hashing import chain_seed
from kinference.core.rates import Rates
from kinference.core.request import Request
from kinference.core.roster import Destination, ModelTraits, Roster
from kinference.core.rulebook import Rulebook
from kinference.core.standing import Standing
from kinference.ids import Seconds
from kinference.structs import FrozenRecord
from kinference.vocabulary import Need

CONTEXT_SLACK: Final = 1.25
"""The prompt's tokens are an estimate: only what is clearly too long is kept from an engine."""
CACHED_MAX: Final = 1_024
HASH_MAX: Final = 1.0 - 2.0**-53
DOUBTS: Final = {
    PrefixSignal.WARMING: "what it stored before its events were read",
    PrefixSignal.GAP: "some of its events were lost",
    PrefixSignal.BROKEN: "its events do not come in",
}


@dataclass(slots=True, eq=False)
class Group:
    """Destinations that compete by cost, each with the model name to ask it for, in columns for the cost terms."""

    weight: int = 1
    destinations: list[Destination] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    rates: list[Rates] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)
    circuits: list[Circuit] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    """-1 for a backend, which has no place in the prefix index."""
    names: list[str] = field(default_factory=list)
    choices: list[EndpointChoice | BackendChoice] = field(default_factory=list)
    """What a decision answers that falls on each."""
    masks: dict[str, int] = field(default_factory=dict)
    """The slots that serve each model name."""
    seeds: dict[str, int] = field(default_factory=dict)
    """Where the hashes of a prompt without a salt begin for each."""
    places: dict[str, dict[int, int]] = field(default_factory=dict)
    """Where in the columns each of those slots is."""
    traits: dict[str, ModelTraits] = field(default_factory=dict)
    context_min: int | None = None
    has_adapters: bool = False
    """Some of them serve the model as an adapter."""
    doubtful: str = ""
    """Why the prefix cache of some of them is not well known; "" when that of each is."""
    turns: Iterator[int] = field(default_factory=count)
    """Counts the decisions among these, for policies that take turns."""
    standing: Standing | None = None
    """What was last collected of them."""

    def add(self, destination: Destination, model: str, rates: Rates, traits: ModelTraits) -> None:
        """One more competitor."""
        self.destinations.append(destination)
        self.models.append(model)
        self.rates.append(rates)
        self.loads.append(destination.load)
        self.circuits.append(destination.circuit)
        self.names.append(destination.name)
        self.choices.append(_choice(destination, model))
        self.traits[model] = traits
        endpoint = destination.endpoint
        self.slots.append(-1 if endpoint is None else endpoint.slot)
        if endpoint is not None:
            if model not in self.masks:
                self.masks[model], self.places[model], self.seeds[model] = 0, {}, chain_seed(model, "")
            self.places[model][endpoint.slot] = len(self.slots) - 1
            self.masks[model] |= 1 << endpoint.slot
            self.has_adapters = self.has_adapters or model in endpoint.adapters
            if endpoint.prefix_signal.is_doubtful:
                self.doubtful = (
                    f"the prefix cache of {endpoint.spec.address} is not well known: {DOUBTS[endpoint.prefix_signal]}"
                )
        context = destination.context_tokens
        if context is not None and (self.context_min is None or context < self.context_min):
            self.context_min = context

    def only(self, places: Sequence[int]) -> "Group":
        """The same group with these competitors alone."""
        kept = Group(self.weight, turns=self.turns)
        for place in places:
            model = self.models[place]
            kept.add(self.destinations[place], model, self.rates[place], self.traits[model])
        return kept


@dataclass(slots=True, eq=False)
class Options:
    """What one kind of request may choose from: tiers of groups, the preferred tier first; and who was removed."""

    tiers: list[list[Group]] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    lacking: set[Need] = field(default_factory=set)
    tripped: list[Circuit] = field(default_factory=list)
    """The circuits of those that could serve it but for them."""
    """What the request needs and some of those removed are known not to have."""

    def reject(self, destination: Destination, verdict: Verdict, cause: str = "") -> None:
        """Note why someone was removed."""
        self.rejected.append(Rejected(destination.name, cause or verdict.cause))
        self.verdicts[verdict] += 1


class Shortlist(FrozenRecord, frozen=True):
    """The groups of the best tier that can serve now; none of them when the last ones were removed."""

    groups: Sequence[Group]
    options: Options


class Candidates:
    """Finds the destinations of requests; what depends on the fleet and the rules alone is found once."""

    def __init__(self, roster: Roster, rulebook: Rulebook) -> None:
        self._roster = roster
        self._rulebook = rulebook
        self._cache: dict[tuple[object, ...], Options] = {}

    def refresh(self, rulebook: Rulebook) -> None:
        """The fleet or the rules have changed."""
        self._rulebook = rulebook
        self._cache.clear()

    def shortlist(
        self, request: Request, rule: TenantRule | None, now: Seconds, purse_usd: float | None = None, skip: int = 0
    ) -> Shortlist:
        """The preferred tier that has someone to serve this request at this moment, for no more than `purse_usd`; or,
        skipping so many such tiers, one after it.

        When all that could serve are ejected for failing, ejection is ignored: better a doubtful answer than none, for
        whoever cannot wait until one of them is tried again.
        """
        options = self._options(request, rule)
        if purse_usd is None and not request.failed and not skip and _all_take(options.tiers, request):
            return Shortlist(options.tiers[0], options)
        fitting = [_fitting(tier, request) for tier in options.tiers]
        affordable = fitting if purse_usd is None else [_affordable(tier, request, purse_usd) for tier in fitting]
        untried = _elsewhere(affordable, request, now) if request.failed else affordable
        for tier in untried:
            healthy = _kept(tier, lambda one: one.circuit.allows(now))
            if healthy and skip == 0:
                return Shortlist(healthy, options)
            skip -= bool(healthy)
        for tier in () if request.is_patient else untried:
            usable = _kept(tier, lambda one: not one.circuit.unusable)
            if usable:
                return Shortlist(usable, options)
        return Shortlist((), _explained(options, fitting, affordable, request))

    def _options(self, request: Request, rule: TenantRule | None) -> Options:
        destinations, minds_money = (rule.destinations, rule.minds_money) if rule is not None else (None, False)
        key = (request.model, request.api, request.needs, request.reaches, request.pool, destinations, minds_money)
        options = self._cache.get(key)
        if options is None:
            options = self._find(request, rule)
            if len(self._cache) >= CACHED_MAX:
                self._cache.clear()
            if options.tiers:
                self._cache[key] = options
        return options

    def _find(self, request: Request, rule: TenantRule | None) -> Options:
        options = Options()
        targets = self._rulebook.resolve(request.model)
        if targets is None:
            tiers = [[self._group(1, self._by_own_name(request, rule), options)]]
        else:
            tiers = [
                [self._group(split[0].weight, self._by_target(request, rule, split), options) for split in splits]
                for splits in map(_splits, _tiers(targets))
            ]
        for tier in tiers:
            groups = [group for group in tier if group.destinations]
            if groups:
                options.tiers.append(groups)
        return options

    def _group(self, weight: int, questions: Iterable[Question], options: Options) -> Group:
        group = Group(weight)
        for question in questions:
            destination, model = question.destination, question.model
            verdict = screen(question)
            if verdict is Verdict.LACKS and model is not None:
                lacking = destination.lacks(model, question.request.needs)
                options.lacking |= lacking
                options.reject(destination, verdict, f"{verdict.cause} {named(lacking)}")
            elif verdict is not None:
                options.reject(destination, verdict)
            elif model is not None:
                group.add(destination, model, self._roster.rates(destination, model), self._roster.traits(model))
        return group

    def _by_own_name(self, request: Request, rule: TenantRule | None) -> Iterable[Question]:
        """All destinations, by the client's own name for the model: what no rule speaks of may still be served."""
        for destination in self._reachable(request):
            backend = destination.backend
            name = request.model if backend is None else backend.models.get(request.model)
            yield Question(request, rule, destination, name)

    def _by_target(self, request: Request, rule: TenantRule | None, targets: Sequence[Target]) -> Iterable[Question]:
        """What the targets name. A pool or backend that is named twice for one model competes once."""
        for destination in self._reachable(request):
            mine = [target for target in targets if (target.kind, target.ref) == (destination.kind, destination.ref)]
            for name in dict.fromkeys(target.model or request.model for target in mine):
                backend = destination.backend
                yield Question(request, rule, destination, name if backend is None else backend.models.get(name, name))

    def _reachable(self, request: Request) -> Iterable[Destination]:
        """Everything served, or the one pool that the request names."""
        if request.pool is None:
            return (*self._roster.endpoints, *self._roster.backends)
        return [one for one in self._roster.endpoints if one.ref == request.pool]


def named(needs: Iterable[Need]) -> str:
    """Needs as people read them."""
    return ", ".join(sorted(need.value.replace("_", " ") for need in needs))


def _choice(destination: Destination, model: str) -> EndpointChoice | BackendChoice:
    endpoint, backend = destination.endpoint, destination.backend
    if backend is not None:
        return BackendChoice(backend.ref, model, backend.api, backend.path)
    assert endpoint is not None
    return EndpointChoice(endpoint.spec.pool, endpoint.spec.address, model, destination.generation, endpoint.engine)


def _tiers(targets: Sequence[Target]) -> Iterable[Sequence[Target]]:
    ordered = sorted(targets, key=lambda target: target.priority)
    return [list(tier) for _, tier in groupby(ordered, key=lambda target: target.priority)]


def _splits(tier: Sequence[Target]) -> list[Sequence[Target]]:
    """Targets whose weights were left at 1 compete by cost as one group; weights of their own split the traffic."""
    if all(target.weight == 1 for target in tier):
        return [tier]
    return [[target] for target in tier if target.weight > 0]


def _fitting(tier: Sequence[Group], request: Request) -> Sequence[Group]:
    """The tier without those whose context is too short, should there be any.

    Of the rest those with room for the longest answer that the client allows, where there are such: some engines
    refuse what others cut off.
    """
    kept = _with_context(tier, request, 0)
    return (_with_context(kept, request, request.output_tokens) or kept) if request.output_tokens else kept


def _with_context(tier: Sequence[Group], request: Request, output_tokens: int) -> Sequence[Group]:
    kept = []
    for group in tier:
        if group.context_min is None:
            kept.append(group)
            continue
        tokens = _context(request, group) + output_tokens
        if tokens <= group.context_min:
            kept.append(group)
        else:
            kept.extend(_kept([group], partial(Destination.takes, tokens=tokens)))
    return kept


def _context(request: Request, group: Group) -> float:
    """The tokens of a context that the prompt takes at the least."""
    return request.prompt_bytes / group.traits[group.models[0]].bytes_per_token / CONTEXT_SLACK


def claim_of(session: str, group: Group) -> float:
    """How strong a claim a group of a split has on a session; the strongest gets it, each as often as its weight says
    (weighted rendezvous hashing).
    """
    one = group.destinations[0]
    name = f"{one.kind.value} {one.ref} {group.models[0]} {session}"
    share = (xxh3_64_intdigest(name.encode("utf-8", "surrogatepass")) + 0.5) / 2**64
    return -group.weight / log(min(share, HASH_MAX))


def _affordable(tier: Sequence[Group], request: Request, purse_usd: float) -> Sequence[Group]:
    """The tier without those where the request is expected to cost more than there is. What costs nothing stays."""
    kept = []
    for group in tier:
        places = [place for place, usd in enumerate(expected_usd(request, group)) if not usd or usd <= purse_usd]
        if places:
            kept.append(group if len(places) == len(group.destinations) else group.only(places))
    return kept


def expected_usd(request: Request, group: Group) -> list[float]:
    """What the request is expected to cost at each place, nothing cached; 0 where the price is unknown."""
    costs = []
    for destination, model in zip(group.destinations, group.models, strict=True):
        price = destination.price(model)
        traits = group.traits[model]
        tokens = traits.prompt_tokens(request.prompt_bytes), traits.answer_tokens(request.output_tokens)
        costs.append(0.0 if price is None else price.of(tokens[0], 0, tokens[1]))
    return costs


def _elsewhere(tiers: Sequence[Sequence[Group]], request: Request, now: Seconds) -> Sequence[Sequence[Group]]:
    """The tiers without those that have failed this very request.

    What attempts it has left are kept for the pools and backends that have not been tried at all: or a large pool would
    use all of them up, and no fallback would ever get its turn.
    """
    untried = [_kept(tier, lambda one: one.place not in request.failed) for tier in tiers]
    members = [one for tier in tiers for group in tier for one in group.destinations]
    failed = {(one.kind, one.ref) for one in members if one.place in request.failed}
    fresh = {(one.kind, one.ref) for one in members if one.circuit.allows(now)} - failed
    if len(fresh) < request.attempts_left or not fresh:
        return untried
    return [_kept(tier, lambda one: (one.kind, one.ref) in fresh) for tier in untried]


def _all_take(tiers: Sequence[Sequence[Group]], request: Request) -> bool:
    """Whether all of the preferred tier can serve it at this moment, which is nearly always so and soon found."""
    for group in tiers[0] if tiers else ():
        for circuit in group.circuits:
            if not circuit.closed:
                return False
        limit = group.context_min
        if limit is not None and _context(request, group) + (request.output_tokens or 0) > limit:
            return False
    return bool(tiers)


def _kept(groups: Sequence[Group], keeps: Callable[[Destination], bool]) -> list[Group]:
    """The groups with only those that the predicate keeps, and without groups that lose all."""
    kept = []
    for group in groups:
        places = [place for place, destination in enumerate(group.destinations) if keeps(destination)]
        if len(places) == len(group.destinations):
            kept.append(group)
        elif places:
            kept.append(group.only(places))
    return kept


def _explained(
    options: Options, fitting: Sequence[Sequence[Group]], affordable: Sequence[Sequence[Group]], request: Request
) -> Options:
    """The options with a verdict also for those that only this request, or this moment, removed."""
    explained = Options([], list(options.rejected), Counter(options.verdicts), set(options.lacking))
    for tier, long_enough, cheap_enough in zip(
        options.tiers, map(_members, fitting), map(_members, affordable), strict=True
    ):
        for destination in (destination for group in tier for destination in group.destinations):
            if destination.place in request.failed:
                explained.reject(destination, Verdict.FAILED)
            elif id(destination) not in long_enough:
                explained.reject(destination, Verdict.TOO_LONG)
            elif id(destination) not in cheap_enough:
                explained.reject(destination, Verdict.OVER_BUDGET)
            else:
                cause = f"{Verdict.TRIPPED.cause}: {destination.circuit.reason}"
                explained.reject(destination, Verdict.TRIPPED, cause)
                explained.tripped.append(destination.circuit)
    return explained


def _members(tier: Sequence[Group]) -> set[int]:
    return {id(destination) for group in tier for destination in group.destinations}

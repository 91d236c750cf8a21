"""The pipeline of one decision: admit, resolve, candidates, cost, guard, pick, commit, explain."""

from collections.abc import Sequence
from random import Random
from typing import Final

from msgspec.structs import replace

from kinference.core.candidates import Candidates, Group, Options, Shortlist, claim_of
from kinference.core.copies import COPY, Copies
from kinference.core.decision import Decision, Explanation
from kinference.core.filters import Verdict
from kinference.core.fleet import Fleet
from kinference.core.flight import NEVER_SEEN, Aside, Flight, SentPrompt
from kinference.core.health import is_failure, is_success
from kinference.core.ledger import Ledger, Load
from kinference.core.limits import MINUTE, TOO_MANY_TENANTS, Account, Accounts, OverLimit
from kinference.core.policies import make_policy
from kinference.core.policy import RoutingRules, TenantRule
from kinference.core.prefix.engine_blocks import EngineBlocks
from kinference.core.prefix.hashing import BLOCK_BYTES
from kinference.core.prefix.index import PrefixIndex
from kinference.core.rates import MS_PER_TOKEN_MIN, Rates
from kinference.core.reasons import unknown_pool
from kinference.core.recording import Recording, Recordings, Setting, record
from kinference.core.refusal import Refusal, RulesApplied, record_refusal, refuse
from kinference.core.request import Request
from kinference.core.rooms import is_unheard
from kinference.core.roster import Roster
from kinference.core.rulebook import Rulebook
from kinference.core.scoring import Column, Draw, weigh
from kinference.core.snapshot import DestinationSnapshot, take_snapshot
from kinference.core.weigh import (
    Prompt,
    Weighing,
    adapter_column,
    expected_cost,
    expected_tokens,
    look_up,
    make_case,
    price_column,
)
from kinference.ids import Milliseconds, ReservationId, Seconds
from kinference.vocabulary import AbortReason, Outcome

UNUSABLE: Final = {
    AbortReason.BACKEND_UNRESOLVED: "a caller could not resolve it",
    AbortReason.BACKEND_UNAUTHORIZED: "a caller had no valid credential for it",
}


_OK: Final = Outcome.OK  # Python 3.11 finds a member by a hook each time
_DEGRADED: Final = Outcome.DEGRADED
SEED_BITS: Final = 53
"""Of the draws of a recorded decision: a number that every reader of JSON keeps."""
BEYOND_HASHING: Final = "the prompt is longer than the prefix index looks at; what is cached beyond that is unknown"


class Router:
    """The decision core's front: one synchronous call decides and commits, the rest tell it what then happened.

    No method awaits, so under asyncio each is atomic and two requests never see the same idle endpoint.
    """

    def __init__(self, fleet: Fleet, rules: RoutingRules, rng: Random) -> None:
        self._rng = rng
        self._index = PrefixIndex()
        self.engine_blocks = EngineBlocks(self._index)
        self._roster = Roster(fleet, self._index, self.engine_blocks)
        self._copies = Copies()
        self._ledger = Ledger()
        self._flights: dict[ReservationId, Flight | Aside] = {}
        self._reports = 0
        self.accounts = Accounts()
        self.recordings = Recordings[Recording]()
        self.refusals = Recordings[Refusal]()
        self._adopt(rules)
        self._candidates = Candidates(self._roster, self._rulebook)

    @property
    def rulebook(self) -> Rulebook:
        """The rules in force."""
        return self._rulebook

    def reconfigure(self, rules: RoutingRules) -> None:
        """Replace the rules; what is learned and what is in flight stay.

        Raises ConfigError for an unknown policy or parameter, naming the nearest.
        """
        self._adopt(rules)
        self._candidates.refresh(self._rulebook)

    def decide(self, request: Request, now: Seconds) -> Decision:
        """Choose, and count the choice in flight and in the prefix index before returning."""
        weighing = self.weigh(request, now)
        return self.commit(weighing, now) if isinstance(weighing, Weighing) else weighing

    def weigh(self, request: Request, now: Seconds, known: Prompt | None = None, skip: int = 0) -> Weighing | Decision:
        """Choose, and change nothing yet; a refusal where there is nothing to choose from.

        `known` was hashed before; `skip` so many of the tiers that could serve.
        """
        weighed = self._weigh(request, now, known, skip)
        if self.refusals.is_on and isinstance(weighed, Decision) and not (skip or request.is_patient):
            self._keep_refusal(request, weighed, now)
        return weighed

    def _keep_refusal(self, request: Request, decision: Decision, now: Seconds) -> None:
        """Record it, unless it was made by how much of its limits a tenant has used."""
        if decision.limit or decision.reason == TOO_MANY_TENANTS:
            return
        rulebook = self._rulebook
        rules = RulesApplied(rulebook.tenant_rule(request.tenant), rulebook.unmatched, rulebook.resolve(request.model))
        self.refusals.keep(record_refusal(request, decision, self._roster, rules, now))

    def _weigh(self, request: Request, now: Seconds, known: Prompt | None, skip: int) -> Weighing | Decision:
        self._sync()
        self._roster.relax(now)
        pool = request.pool
        if pool is not None and not self._roster.has_pool(pool):
            return Decision(Outcome.NO_WORKERS, unknown_pool(pool))
        rule = self._rulebook.tenant_rule(request.tenant)
        refusal = self._rulebook.refusal(request, rule)
        if refusal:
            return Decision(Outcome.POLICY_REJECTED, refusal)
        account = None
        if rule is not None and rule.limits is not None:
            account = self.accounts.of(request.tenant, rule.limits, now)
            if account is None:
                return Decision(Outcome.POLICY_REJECTED, TOO_MANY_TENANTS, retry_after=MINUTE)
        purse = None if account is None else account.purse_usd
        shortlist = self._candidates.shortlist(request, rule, now, purse, skip)
        if not shortlist.groups:
            return self._nowhere(request, shortlist.options, account, now)
        weighing = self._choose(request, rule, shortlist, now, known)
        return weighing if account is None else self._within_limits(replace(weighing, account=account), now)

    @property
    def changes(self) -> int:
        """Grows with everything that changes what is known of destinations: while it stands, only time passes."""
        return self._reports + self._roster.changes

    def keeps_prefixes_apart(self, tenant: str) -> bool:
        """Whether a tenant's prompts share no cached prefix with another's."""
        rule = self._rulebook.tenant_rule(tenant)
        return rule is not None and rule.own_prefixes

    def commit(self, weighing: Weighing, now: Seconds) -> Decision:
        """Count the choice in flight and in the index: from here on the next decision sees it.

        A tenant with limits can still be refused: others of its own may have been committed since it was weighed.
        """
        account = weighing.account
        if account is not None and isinstance(refusal := self._within_limits(weighing, now), Decision):
            return refusal
        if weighing.recording is not None:
            self.recordings.keep(weighing.recording)
        self._reports += 1
        request, group, prompt, case = weighing.request, weighing.group, weighing.prompt, weighing.case
        weighed, prompt_bytes = weighing.weighed, request.prompt_bytes
        chosen = weighed.chosen
        destination, model, rates = group.destinations[chosen], group.models[chosen], group.rates[chosen]
        load, traits, uncached, hit = destination.load, group.traits[model], case.uncached[chosen], case.hits[chosen]
        computed = _computed_tokens(load, rates, case.ahead[chosen], now) + uncached
        alone, is_lone = load.prefilling == 0, load.requests == 0
        if not alone:
            load.close_silence(rates.ms_per_token, now)
            rates.typical.is_unheard = rates.typical.samples == 0 and is_unheard(load, rates, now)
        if self._scoring.harm is not None:
            self._copies.learn(prompt, group, case, weighed, self._scoring.harm)
        reservation = self._ledger.reserve(load, uncached, case.output_tokens, now)
        slot, blocks = group.slots[chosen], prompt.blocks.get(model)
        insertion = self._index.insert(slot, blocks) if blocks and slot >= 0 else None
        flight = Flight(destination, rates, traits, prompt_bytes, insertion)
        flight.computed_tokens, flight.alone, flight.is_lone = computed, alone, is_lone
        flight.is_measured = traits.counted > 0
        if insertion is not None and insertion.known:
            flight.believed_tokens = int(insertion.known * BLOCK_BYTES / traits.bytes_per_token)
        if account is not None:
            flight.hold = account.hold(expected_tokens(weighing), *expected_cost(weighing))
        if group.has_adapters:
            flight.loads_adapter = not destination.is_loaded(model)
            destination.use_adapter(model)
        self._flights[reservation] = flight
        destination.picked(reservation, hit, now)
        traits.learn_uncached(uncached)
        doubt = BEYOND_HASHING if prompt.truncated and slot >= 0 else ""
        if group.doubtful and case.key:  # what has not one full block cannot be cached either
            doubt = doubt or group.doubtful
        tokens, expected_ms = traits.prompt_tokens(prompt_bytes), rates.at(computed)
        reason = f"expect {format(expected_ms, '.0f')} ms, {hit} of {tokens} tokens cached"
        rejected = weighing.shortlist.options.rejected
        return Decision(
            _DEGRADED if doubt else _OK,
            f"{reason}; {doubt}" if doubt else reason,
            group.choices[chosen],
            reservation,
            tokens,
            hit,
            expected_ms,
            "",
            None,
            None if account is None else account.left(now),
            weighed,
            tuple(rejected) if rejected else (),
        )

    def explain(self, decision: Decision) -> Explanation:
        """The table behind a decision, made on demand from what the decision kept."""
        return decision.explain()

    def first_token(
        self, reservation: ReservationId, ttft_ms: Milliseconds, upstream_status: int, now: Seconds
    ) -> None:
        """The first response byte arrived: prefill is done (or the destination failed). Unknown ids are ignored."""
        self._reports += 1
        flight = self._flight(reservation)
        if flight is None:
            return
        took_ms = None
        if is_success(upstream_status):
            took_ms, slope = ttft_ms, max(flight.rates.ms_per_token, MS_PER_TOKEN_MIN)
            computed = self._ledger.computed_since(reservation, ttft_ms, slope, now)
            flight.computed_tokens = flight.computed_tokens if computed is None else computed
        if not self._ledger.first_token(reservation, now, took_ms):
            return
        flight.learn_first(ttft_ms, upstream_status, now)
        if flight.served:
            self._ledger.told(reservation, ttft_ms, now)
            self._ledger.served(reservation)
        elif is_failure(upstream_status):
            self._take_back(flight)

    def broke(self, reservation: ReservationId, now: Seconds) -> None:
        """The destination broke its answer off: to be told before the final counts, which are those of a part."""
        self._reports += 1
        flight = self._flight(reservation)
        if flight is not None:
            flight.learn_break(now)

    def final_token(
        self,
        reservation: ReservationId,
        prompt_tokens: int,
        completion_tokens: int,
        cached_tokens: int | None,
        now: Seconds,
    ) -> None:
        """The response is complete: give the load back, learn from the counts, correct the prefix index."""
        flight = self._landed(reservation)
        if flight is None:
            return
        if flight.served:
            self._ledger.served(reservation)
        self._ledger.release(reservation, now)
        flight.learn_final(prompt_tokens, completion_tokens, now)
        flight.settle(prompt_tokens, completion_tokens, cached_tokens)
        prompt = flight.learn_cached(cached_tokens)
        if prompt is not None:
            self.engine_blocks.settle(prompt.endpoint.slot, prompt.blocks, prompt.confirmed)
        if cached_tokens is not None and prompt_tokens > 0 and flight.served:
            cached = min(cached_tokens, prompt_tokens)
            if flight.learn_hit(cached) and flight.insertion is not None:
                self._index.correct(flight.insertion, flight.prompt_blocks(cached))

    def abort(self, reservation: ReservationId, reason: AbortReason, now: Seconds, detail: str = "") -> None:
        """The request died after the decision: give the load back, and take back the optimistic prefix insertion
        where the endpoint never saw the prompt. `detail` is the caller's words for it.
        """
        flight = self._end(reservation, reason, now, is_told=True)
        if flight is not None:
            flight.explain(detail)

    def _end(self, reservation: ReservationId, reason: AbortReason, now: Seconds, *, is_told: bool) -> Flight | None:
        flight = self._landed(reservation)
        if flight is None:
            return None
        self._ledger.release(reservation, now, is_told=is_told)
        flight.settle_unreported(reason)
        if reason in NEVER_SEEN:
            self._take_back(flight)
        if reason in UNUSABLE:
            if flight.destination.backend is not None:
                flight.destination.circuit.reject(UNUSABLE[reason], now)
            else:
                flight.destination.circuit.failed(UNUSABLE[reason], now)
        return flight

    def expire(self, reservation: ReservationId, dispatched: bool, now: Seconds) -> None:
        """The ticket's time is over with nothing heard: give the load back; if never dispatched, as NOT_DISPATCHED."""
        reason = AbortReason.UNSPECIFIED if dispatched else AbortReason.NOT_DISPATCHED
        self._end(reservation, reason, now, is_told=not dispatched)

    def sent(self, reservation: ReservationId) -> SentPrompt | None:
        """The prompt of a request under way, where its endpoint tells of its cache; None once it has ended."""
        flight = self._flight(reservation)
        return flight.sent() if flight is not None else None

    def set_aside(self, reservation: ReservationId) -> None:
        """Very many others have come, and this request has not gone to its destination: hold it in less memory."""
        flight = self._flight(reservation)
        if flight is not None:
            self._flights[reservation] = flight.aside()

    def pack(self) -> None:
        """Hold what is in flight in tables of its size: one stays as large as it once was."""
        self._flights = dict(self._flights)
        self._ledger.pack()
        for destination in (*self._roster.endpoints, *self._roster.backends):
            destination.load.prompts = dict(destination.load.prompts)

    def take_forgotten(self) -> int:
        """How many models had to make room for others since the last time."""
        forgotten, self._roster.forgotten = self._roster.forgotten, 0
        return forgotten

    def snapshot(self, now: Seconds) -> tuple[DestinationSnapshot, ...]:
        """Every destination as this router sees it, in the order of the fleet, for people."""
        self._sync()
        return take_snapshot(self._roster, self._index, self.engine_blocks, now)

    def _sync(self) -> None:
        """Take over what the fleet was told: who can serve what, and what engines say of our requests."""
        if self._roster.sync():
            self._candidates.refresh(self._rulebook)
        while self._roster.losing:
            self._ledger.write_off(self._roster.losing.pop())

    def _adopt(self, rules: RoutingRules) -> None:
        scoring = make_policy(rules.policy, rules.parameters).scoring()
        self._policy_name, self._parameters = rules.policy, rules.parameters
        self._scoring, self._rulebook = scoring, Rulebook(rules)

    def _nowhere(self, request: Request, options: Options, account: Account | None, now: Seconds) -> Decision:
        """Nobody is left. Where the tenant's budget removed the last, it is told as its other limits are."""
        if account is not None and Verdict.OVER_BUDGET in options.verdicts:
            over = account.over_budget(self._month_left(now))
            return replace(_over_limit(over, account, now), _rejected=tuple(options.rejected))
        return refuse(request, options, now)

    def _within_limits(self, weighing: Weighing, now: Seconds) -> Weighing | Decision:
        """The same again, or the refusal where the tenant is at one of its limits."""
        account = weighing.account
        assert account is not None
        over, purse, (_, usd) = (
            account.over_limit(expected_tokens(weighing), now),
            account.purse_usd,
            expected_cost(weighing),
        )
        if over is None and purse is not None and usd > max(purse, 0.0):
            over = account.over_budget(self._month_left(now))
        return weighing if over is None else _over_limit(over, account, now)

    def _month_left(self, now: Seconds) -> Seconds:
        return max(0.0, self.accounts.month_ends_at - now)

    def _choose(
        self, request: Request, rule: TenantRule | None, shortlist: Shortlist, now: Seconds, known: Prompt | None
    ) -> Weighing:
        groups, scoring = shortlist.groups, self._scoring
        group = groups[0] if len(groups) == 1 else self._split(request, groups)
        prompt = look_up(request, group, self._index, known) if scoring.by_prefix else Prompt()
        case = make_case(request, group, prompt, self.changes, now)
        if scoring.guards and not request.is_patient and 0 < len(case.fitting) < len(group.destinations):
            # the others would push running requests out of their caches; who is held goes to none before it has room
            group = group.only(case.fitting)
            case = make_case(request, group, prompt, self.changes, now)
        extra: tuple[Column, ...] = ()
        if rule is not None and rule.usd_per_hour is not None and scoring.in_milliseconds:
            extra = (("price", price_column(group, case, rule.usd_per_hour)),)
        if group.has_adapters and scoring.in_milliseconds:
            extra = (*extra, ("adapter_load", adapter_column(group)))
        if scoring.harm is not None and (paid := self._copies.paid(prompt, group, case, scoring.harm)) is not None:
            extra = (*extra, (COPY, paid))
        if not self.recordings.is_on:
            weighed = weigh(case, Draw(self._policy_name, scoring, request.qos, extra, self._rng))
            return Weighing(request, group, prompt, case, weighed, shortlist)
        rejected = tuple(shortlist.options.rejected)
        seed = self._rng.getrandbits(SEED_BITS)
        setting = Setting(now, self._policy_name, self._parameters, request.qos, seed, extra, rejected)
        weighed = weigh(case, Draw(self._policy_name, scoring, request.qos, extra, Random(seed)))
        return Weighing(request, group, prompt, case, weighed, shortlist, recording=record(case, setting, weighed))

    def _split(self, request: Request, groups: Sequence[Group]) -> Group:
        """The target that this request falls to: by weight, and for one session always the same while it is there.

        When weights change or a target goes, no other sessions move than those that have to.
        """
        if request.session:
            return max(groups, key=lambda group: claim_of(request.session, group))
        point = self._rng.random() * sum(group.weight for group in groups)
        for group in groups:
            point -= group.weight
            if point < 0:
                return group
        return groups[-1]

    def _flight(self, reservation: ReservationId) -> Flight | None:
        """What is in flight under that number, taken up again if it was set aside."""
        kept = self._flights.get(reservation)
        if kept is None or isinstance(kept, Flight):
            return kept
        flight = self._flights[reservation] = kept.resume()
        return flight

    def _landed(self, reservation: ReservationId) -> Flight | None:
        """The same, and in flight no more."""
        self._reports += 1
        kept = self._flights.pop(reservation, None)
        return kept if kept is None or isinstance(kept, Flight) else kept.resume()

    def _take_back(self, flight: Flight) -> None:
        if flight.insertion is not None:
            self._index.rollback(flight.insertion)


def _computed_tokens(load: Load, rates: Rates, ahead: float, now: Seconds) -> float:
    """The prompt tokens that will be computed before a new one's turn, as far as anybody has told."""
    slope = rates.ms_per_token
    if slope < MS_PER_TOKEN_MIN:
        slope = MS_PER_TOKEN_MIN
    if is_unheard(load, rates, now):
        return 0.0
    return load.left_of(ahead, slope, now)


def _over_limit(over: OverLimit, account: Account, now: Seconds) -> Decision:
    return Decision(
        Outcome.POLICY_REJECTED, over.reason, limit=over.limit, retry_after=over.retry_after, left=account.left(now)
    )

"""The pipeline of one decision: admit, resolve, candidates, cost, guard, pick, commit, explain (ROUTING.md)."""

from random import Random

from kinference.core.decision import Decision, Explanation
from kinference.core.fleet import Fleet
from kinference.core.policy import RoutingRules
from kinference.core.request import Request
from kinference.ids import Milliseconds, ReservationId, Seconds
from kinference.vocabulary import AbortReason


class Router:
    """The decision core's front: one synchronous call decides and commits, the rest tell it what then happened.

    No method awaits, so under asyncio each is atomic and two requests never see the same idle endpoint.
    """

    def __init__(self, fleet: Fleet, rules: RoutingRules, rng: Random) -> None:
        raise NotImplementedError

    def reconfigure(self, rules: RoutingRules) -> None:
        """Replace the rules; what is learned and what is in flight stay.

        Raises ConfigError for an unknown policy or parameter, naming the nearest.
        """

    def decide(self, request: Request, now: Seconds) -> Decision:
        """Choose, and count the choice in flight and in the prefix index before returning."""
        raise NotImplementedError

    def explain(self, decision: Decision) -> Explanation:
        """The table behind a decision, made on demand from what the decision kept."""
        raise NotImplementedError

    def first_token(
        self, reservation: ReservationId, ttft_ms: Milliseconds, upstream_status: int, now: Seconds
    ) -> None:
        """The first response byte arrived: prefill is done (or the destination failed). Unknown ids are ignored."""

    def final_token(
        self,
        reservation: ReservationId,
        prompt_tokens: int,
        completion_tokens: int,
        cached_tokens: int | None,
        now: Seconds,
    ) -> None:
        """The response is complete: give the load back, learn from the counts, correct the prefix index."""

    def abort(self, reservation: ReservationId, reason: AbortReason, now: Seconds) -> None:
        """The request died after the decision: give the load back, and take back the optimistic prefix insertion
        where the endpoint never saw the prompt.
        """

    def expire(self, reservation: ReservationId, dispatched: bool, now: Seconds) -> None:
        """The ticket's time is over with nothing heard: give the load back; if never dispatched, as NOT_DISPATCHED."""

"""What is told of a picked request once it is on its way, and how it ends."""

import logging
from typing import Final

from kinference.core.pick import UNUSABLE, Router
from kinference.errors import UnknownId
from kinference.ids import ResponseId
from kinference.observe.metrics import ABORTS, INTER_TOKEN_GAPS, ITL_IGNORED, Metrics
from kinference.picker.flow import Flow
from kinference.picker.held import HeldPicks
from kinference.picker.inter_token import InterTokenGaps, is_usable
from kinference.picker.tickets import Ticket, Tickets
from kinference.ports import Clock, FinalTokenReport, FirstTokenReport
from kinference.vocabulary import AbortReason

logger: Final = logging.getLogger("kinference.picker")

TTFT_MAX_MS: Final = 3_600_000
"""A report beyond this says nothing about the destination."""


class Reports:
    """The callers' side of tickets. Each report may let a Pick go that is held."""

    def __init__(self, router: Router, tickets: Tickets, held: HeldPicks, clock: Clock, metrics: Metrics) -> None:
        self._router, self._tickets, self._held = router, tickets, held
        self._clock, self._metrics = clock, metrics
        self._gaps = InterTokenGaps()

    def first_token(self, report: FirstTokenReport) -> bool:
        """The first response byte. A repeat is acknowledged and changes nothing."""
        ticket = self._tickets.find(report.response_id)
        if ticket is None:
            return False
        flow = ticket.flow
        if flow.observed_ttft_ms is None:
            now, ttft_ms, status = self._clock.now(), report.observed_ttft_ms, report.upstream_status
            ttft_ms = min(ttft_ms, TTFT_MAX_MS)
            flow.observed_ttft_ms, flow.upstream_status = ttft_ms, status
            self._tickets.dispatch(ticket, now)
            self._router.first_token(flow.decision.reservation, ttft_ms, status, now)
            self._held.release(now)
        return True

    def final_token(self, report: FinalTokenReport) -> bool:
        """The response is complete: the ticket closes."""
        ticket = self._tickets.find(report.response_id)
        if ticket is None:
            return False
        flow, now = ticket.flow, self._clock.now()
        flow.final = report
        self._tickets.close(ticket)
        self.end(flow, "final")
        reservation, prompt_tokens, cached = flow.decision.reservation, report.prompt_tokens, report.cached_tokens
        if cached is not None and cached > prompt_tokens:
            cached = prompt_tokens
        if report.broken:
            self._router.broke(reservation, now)
        self._router.final_token(reservation, prompt_tokens, report.completion_tokens, cached, now)
        if report.itl_bucket_counts:
            self._merge_gaps(flow.destination, report)
        self._held.release(now)
        return True

    def abort(self, response_id: ResponseId, reason: AbortReason, detail: str = "") -> bool:
        """The request died. True the first time for a live id. `detail` is for who runs the fleet."""
        ticket = self._tickets.find(response_id)
        if ticket is None:
            return False
        now = self._clock.now()
        ticket.flow.abort_detail = detail
        self._close(ticket, f"abort {reason.name.lower()}")
        self._tickets.cut_pull(ticket, UnknownId("the request was aborted while its body was pulled"), now)
        self._router.abort(ticket.flow.decision.reservation, reason, now, detail)
        self._metrics.count(ABORTS, reason.name.lower())
        if reason in UNUSABLE:
            name = ticket.flow.destination
            logger.warning("%s is left alone: %s", name, UNUSABLE[reason], extra={"destination": name})
        self._held.release(now)
        return True

    def end(self, flow: Flow, how: str) -> None:
        """It is over: refused, reported, aborted or expired."""
        flow.ended = how
        if flow.remote and logger.isEnabledFor(logging.INFO):
            logger.info("flow ended", extra=flow.fields())

    def publish(self) -> None:
        """Bring the counts of gaps up to date."""
        for bucket in self._gaps.take():
            self._metrics.count(INTER_TOKEN_GAPS, bucket.destination, bucket.upper_edge_ms, amount=bucket.gaps)

    def _merge_gaps(self, name: str, report: FinalTokenReport) -> None:
        if not is_usable(report):
            self._metrics.count(ITL_IGNORED)
            return
        self._gaps.merge(name, report)

    def _close(self, ticket: Ticket, how: str) -> None:
        self._tickets.close(ticket)
        self.end(ticket.flow, how)

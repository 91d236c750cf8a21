"""What is told of requests that a desk has answered."""

import logging

import pytest
from msgspec.structs import replace

from kinference.core.pick import Router
from kinference.errors import UnknownId
from kinference.ids import ResponseId
from kinference.observe.metrics import Metrics
from kinference.picker.desk import Desk
from kinference.ports import FirstTokenReport
from kinference.vocabulary import AbortReason, Outcome
from tests.unit.picker.steps import final, in_flight, pick, pull


def test_a_destination_that_breaks_its_answers_off_is_left_alone(desk: Desk, router: Router) -> None:
    for _ in range(10):
        result = pick(desk)
        desk.reports.first_token(FirstTokenReport(result.response_id, 12, 200))
        assert desk.reports.final_token(replace(final(result.response_id), broken=True))
    reasons = {row.circuit_reason for row in router.snapshot(0.0) if row.circuit == "open"}
    assert reasons == {"broke its answer off"}


def test_what_a_caller_says_of_a_failure_is_for_who_runs_the_fleet(desk: Desk, router: Router) -> None:
    for _ in range(10):
        result = pick(desk)
        if result.destination is not None:
            desk.reports.first_token(FirstTokenReport(result.response_id, 12, 502))
            desk.reports.abort(result.response_id, AbortReason.NOT_DISPATCHED, "its certificate does not verify")
    reasons = {row.circuit_reason for row in router.snapshot(0.0) if row.circuit == "open"}
    assert reasons == {"status 502: its certificate does not verify"}
    assert "certificate" not in pick(desk).reason


def test_what_a_caller_says_of_a_request_that_went_well_explains_nothing(desk: Desk, router: Router) -> None:
    for _ in range(10):
        result = pick(desk)
        desk.reports.first_token(FirstTokenReport(result.response_id, 12, 200))
        desk.reports.abort(result.response_id, AbortReason.UNSPECIFIED, "the client left")
    assert {row.circuit_reason for row in router.snapshot(0.0)} == {""}


def test_a_repeated_first_token_is_acknowledged_and_changes_nothing(desk: Desk) -> None:
    result = pick(desk)
    assert desk.reports.first_token(FirstTokenReport(result.response_id, 12, 200))
    assert desk.reports.first_token(FirstTokenReport(result.response_id, 9999, 500))
    flow = desk.flows(1)[0]
    assert (flow.observed_ttft_ms, flow.upstream_status) == (12, 200)


def test_an_absurd_first_token_time_is_clamped(desk: Desk) -> None:
    result = pick(desk)
    desk.reports.first_token(FirstTokenReport(result.response_id, 2**32 - 1, 200))
    assert desk.flows(1)[0].observed_ttft_ms == 3_600_000


def test_reports_and_aborts_of_an_id_that_is_not_live_change_nothing(desk: Desk) -> None:
    result = pick(desk)
    assert desk.reports.final_token(final(result.response_id))
    for response_id in (result.response_id, ResponseId(0), ResponseId(77)):
        assert not desk.reports.first_token(FirstTokenReport(response_id, 1, 200))
        assert not desk.reports.final_token(final(response_id))
        assert not desk.reports.abort(response_id, AbortReason.UNSPECIFIED)


def test_a_final_report_without_pull_or_first_token_closes_everything(desk: Desk, router: Router) -> None:
    result = pick(desk)
    assert desk.reports.final_token(final(result.response_id))
    assert (desk.buffered_bytes, in_flight(router)) == (0, 0)


@pytest.mark.parametrize("reason", list(AbortReason))
def test_an_abort_releases_bytes_and_load_once(desk: Desk, router: Router, reason: AbortReason) -> None:
    result = pick(desk)
    assert desk.reports.abort(result.response_id, reason)
    assert not desk.reports.abort(result.response_id, reason)
    assert (desk.buffered_bytes, in_flight(router), desk.is_idle) == (0, 0, True)


def test_an_abort_cuts_a_running_pull(desk: Desk) -> None:
    woken: list[str] = []
    result = pick(desk)
    ticket = desk.claim(result.response_id, lambda: woken.append("yes"))
    desk.piece_sent(ticket)
    assert desk.reports.abort(result.response_id, AbortReason.PULL_FAILED)
    assert (woken, desk.buffered_bytes, desk.is_idle) == (["yes"], 0, True)
    with pytest.raises(UnknownId, match="aborted"):
        desk.next_piece(ticket)


def test_a_backend_that_cannot_be_used_leaves_the_candidates(desk: Desk) -> None:
    body = b'{"model":"gpt","messages":[{"role":"user","content":"hi"}]}'
    assert desk.reports.abort(pick(desk, body).response_id, AbortReason.BACKEND_UNAUTHORIZED)
    refused = pick(desk, body)
    assert refused.outcome is Outcome.NO_WORKERS
    assert "cloud" in refused.reason


def test_inter_token_counts_add_up_by_destination(desk: Desk, metrics: Metrics) -> None:
    body = b'{"model":"gpt","messages":[{"role":"user","content":"hi"}]}'
    for _ in range(2):
        desk.reports.final_token(final(pick(desk, body).response_id, (5, *(0,) * 13, 1), layout=1))
    desk.publish()
    page = metrics.exposition().decode()
    assert 'inter_token_gaps_total{destination="default/cloud",up_to_ms="5"} 10.0' in page
    assert 'inter_token_gaps_total{destination="default/cloud",up_to_ms="+Inf"} 2.0' in page
    assert "kinference_picker_itl_ignored_total 0.0" in page


@pytest.mark.parametrize(("counts", "layout"), [((1,) * 15, 2), ((1,) * 14, 1), ((1,) * 15, 0)])
def test_other_inter_token_layouts_are_ignored_and_counted_and_the_rest_applied(
    desk: Desk, metrics: Metrics, router: Router, counts: tuple[int, ...], layout: int
) -> None:
    assert desk.reports.final_token(final(pick(desk).response_id, counts, layout))
    assert in_flight(router) == 0
    desk.publish()
    page = metrics.exposition().decode()
    assert "kinference_picker_itl_ignored_total 1.0" in page
    assert "up_to_ms=" not in page


def test_a_report_without_counts_is_not_counted_as_unusable(desk: Desk, metrics: Metrics) -> None:
    desk.reports.final_token(final(pick(desk).response_id))
    assert "kinference_picker_itl_ignored_total 0.0" in metrics.exposition().decode()


def test_one_line_is_logged_for_each_flow_that_ended(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "kinference.picker"):
        result = pick(desk, remote=True)
        pull(desk, result.response_id)
        assert not caplog.records
        desk.reports.abort(result.response_id, AbortReason.PULL_FAILED, "gone")
        pick(desk, b'{"model":"llama","messages":"a secret"}', remote=True)
        pick(desk)
    aborted, refused = caplog.records
    assert (vars(aborted)["ended"], vars(aborted)["abort_detail"]) == ("abort pull_failed", "gone")
    assert (vars(refused)["ended"], vars(refused)["outcome"]) == ("refused", "bad_request")
    assert "secret" not in str(vars(refused))

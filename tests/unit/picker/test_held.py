"""Picks that wait: from the desk's side, then over each way to ask."""

from collections.abc import Callable

import pytest

from kinference.core.pick import Router
from kinference.core.waiting import AdmissionRules, ClassRule
from kinference.errors import BodyConsumed, UnknownId
from kinference.ids import StreamId
from kinference.observe.metrics import Metrics
from kinference.picker.desk import Desk
from kinference.picker.held import HeldPick
from kinference.picker.limits import PickerLimits
from kinference.ports import FirstTokenReport, PickArguments, PickResult
from kinference.vocabulary import AbortReason, Outcome, QosClass

Advance = Callable[[float], None]
BODY = b'{"model": "llama", "messages": [{"role": "user", "content": "' + b"x" * 2_000 + b'"}]}'
OTHER = BODY.replace(b"x", b"y")
WAITS = {qos: ClassRule(1.0, 60.0) for qos in QosClass}


@pytest.fixture
def limits() -> PickerLimits:
    """An engine with anything to compute is busy."""
    rules = AdmissionRules(start_within_ms=1.0, classes=WAITS, waiting_max=3)
    return PickerLimits(buffer_max_bytes=100_000, body_ttl=30.0, admission=rules)


def push(desk: Desk, body: bytes = BODY) -> StreamId:
    stream_id = desk.open(None)
    desk.append(stream_id, body)
    desk.finish(stream_id)
    desk.commit(stream_id)
    return stream_id


def ask(desk: Desk, stream_id: StreamId, woken: list[StreamId] | None = None) -> PickResult | HeldPick[PickResult]:
    wake = [] if woken is None else woken
    return desk.pick(PickArguments(stream_id, "acme"), lambda: wake.append(stream_id))


def go(desk: Desk, body: bytes = BODY) -> PickResult:
    result = ask(desk, push(desk, body))
    assert isinstance(result, PickResult)
    return result


def hold(desk: Desk, stream_id: StreamId, woken: list[StreamId] | None = None) -> HeldPick[PickResult]:
    result = ask(desk, stream_id, woken)
    assert isinstance(result, HeldPick)
    return result


def fill(desk: Desk) -> list[PickResult]:
    """Both engines are busy from here on, each with a prompt that the other has not cached."""
    return [go(desk), go(desk, OTHER)]


def test_a_pick_that_nobody_can_start_is_woken_by_a_report_and_answered(desk: Desk) -> None:
    running, woken = fill(desk), list[StreamId]()
    stream_id = push(desk)
    pick = hold(desk, stream_id, woken)
    assert woken == []
    assert desk.reports.first_token(FirstTokenReport(running[0].response_id, 5, 200))
    assert woken == [stream_id]
    result = desk.resume(pick)
    assert isinstance(result, PickResult)
    assert (result.outcome, result.destination) == (Outcome.OK, running[0].destination)
    assert result.reason.startswith("waited 0 ms until an engine could start it; ")
    assert result.body_total_bytes == len(BODY)


def test_time_alone_wakes_it_when_an_engine_must_be_done(desk: Desk, advance: Advance) -> None:
    fill(desk)
    woken = list[StreamId]()
    pick = hold(desk, push(desk), woken)
    due = desk.deadline()
    assert due is not None
    assert due < 1_001.0
    advance(0.2)
    desk.expire()
    assert len(woken) == 1
    desk.resume(pick)


def test_the_timer_is_told_when_to_look(desk: Desk) -> None:
    fill(desk)
    told = list[float]()
    desk.on_hold(told.append)
    pick = hold(desk, push(desk))
    assert told
    assert min(told) < 1_001.0
    desk.give_up(pick)


def test_while_it_waits_its_body_neither_expires_nor_serves_another(desk: Desk, advance: Advance) -> None:
    fill(desk)
    stream_id = push(desk)
    pick = hold(desk, stream_id)
    with pytest.raises(BodyConsumed, match="another Pick of this body waits"):
        ask(desk, stream_id)
    desk.discard(stream_id)
    advance(31.0)
    desk.expire()
    assert pick.decision is not None
    result = desk.resume(pick)
    assert isinstance(result, PickResult)
    with pytest.raises(BodyConsumed, match="an earlier Pick"):
        ask(desk, stream_id)


def test_who_gives_up_leaves_the_body_to_another_pick_until_its_time_is_over(desk: Desk, advance: Advance) -> None:
    running = fill(desk)
    stream_id = push(desk)
    desk.give_up(hold(desk, stream_id))
    desk.reports.abort(running[0].response_id, AbortReason.NOT_DISPATCHED)
    assert isinstance(ask(desk, stream_id), PickResult)
    other = push(desk)
    desk.give_up(hold(desk, other))
    advance(31.0)
    desk.expire()
    with pytest.raises(UnknownId):
        ask(desk, other)


def test_giving_up_after_the_decision_takes_it_back(desk: Desk, router: Router) -> None:
    running = fill(desk)
    pick = hold(desk, push(desk))
    desk.reports.first_token(FirstTokenReport(running[0].response_id, 5, 200))
    assert sum(one.requests for one in router.snapshot(1_000.0)) == 3
    desk.give_up(pick)
    assert sum(one.requests for one in router.snapshot(1_000.0)) == 2
    assert not desk.admission


def test_an_abort_makes_room(desk: Desk) -> None:
    running = fill(desk)
    pick = hold(desk, push(desk))
    desk.reports.abort(running[0].response_id, AbortReason.NOT_DISPATCHED)
    result = desk.resume(pick)
    assert isinstance(result, PickResult)


def test_a_wait_that_lasts_too_long_is_refused_with_a_hint(desk: Desk, advance: Advance) -> None:
    fill(desk)
    pick = hold(desk, push(desk))
    desk.admission.reconfigure(AdmissionRules(start_within_ms=-1e9, classes=WAITS))  # no engine ever is ready
    advance(61.0)
    desk.expire()
    result = desk.resume(pick)
    assert isinstance(result, PickResult)
    assert result.outcome is Outcome.POLICY_REJECTED
    assert result.reason.startswith("saturated: waited 61 s")
    assert result.retry_after is not None
    assert result.retry_after >= 1.0


def test_metrics_tell_who_waits_how_long_and_who_was_refused(desk: Desk, metrics: Metrics) -> None:
    running = fill(desk)
    picks = [hold(desk, push(desk)) for _ in range(3)]
    refused = ask(desk, push(desk))
    assert isinstance(refused, PickResult)
    assert refused.reason.startswith("saturated: 3 requests wait already; try again in ")
    desk.publish()
    assert 'kinference_admission_waiting{class="interactive"} 3.0' in metrics.exposition().decode()
    desk.reports.abort(running[0].response_id, AbortReason.NOT_DISPATCHED)
    desk.publish()
    text = metrics.exposition().decode()
    assert 'kinference_admission_waiting{class="interactive"} 2.0' in text
    assert 'kinference_admission_wait_seconds_count{class="interactive"} 1.0' in text
    for pick in picks:
        desk.give_up(pick)

import dataclasses
import gc
import json
import logging
import sys
from collections.abc import Callable
from dataclasses import replace as replace_dataclass
from random import Random

import msgspec
import pytest

from kinference.core.fleet import BackendSpec, CacheFeed, Fleet
from kinference.core.flight import SentPrompt
from kinference.core.limits import Limits
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules, TenantRule
from kinference.core.prices import Price, PricedModel
from kinference.core.waiting import AdmissionRules
from kinference.errors import BodyConsumed, BudgetExceeded, InvalidArgument, UnknownId
from kinference.ids import ObjectRef, StreamId
from kinference.observe.metrics import Metrics
from kinference.picker.desk import Desk
from kinference.picker.limits import PickerLimits
from kinference.ports import Clock, FinalTokenReport, FirstTokenReport, PickArguments, Placed
from kinference.shapes.translate import WayBack
from kinference.vocabulary import AbortReason, Api, Outcome, QosClass, StreamUsage
from tests.unit.picker.steps import CHAT, ask, final, in_flight, pick, pull, push

Advance = Callable[[float], None]

SMALL_OBJECTS_MAX = 17
"""Each, compiled or not: fewer by far than the request had when it was picked, forty and more."""
SHORT = b'{"model": "llama", "messages": [{"role": "user", "content": "%d"}]}'
"""Not one block of it is indexed."""


def test_a_push_that_came_whole_is_stored_and_a_refused_one_leaves_nothing(desk: Desk) -> None:
    pushed = desk.push(3, b"abc")
    desk.discard(pushed.stream_id)
    assert (pushed.total_bytes, desk.buffered_bytes) == (3, 3), "the end of its stream takes nothing away"
    for declared, chunk in ((2, b"abc"), (4, b"abc"), (1, None)):
        with pytest.raises(InvalidArgument):
            desk.push(declared, chunk)
    assert desk.push(None, None).total_bytes == 0
    assert desk.buffered_bytes == 3


def place(desk: Desk, body: bytes) -> Placed:
    placed = desk.place(body, PLACED)
    assert isinstance(placed, Placed), "an engine could start it at once"
    return placed


def test_a_whole_flow_hands_the_body_back_and_leaves_nothing(desk: Desk, router: Router) -> None:
    result = pick(desk)
    assert (result.outcome, result.body_total_bytes) == (Outcome.OK, len(CHAT))
    assert in_flight(router) == 1
    assert pull(desk, result.response_id) == CHAT
    assert desk.reports.first_token(FirstTokenReport(result.response_id, 12, 200))
    assert desk.reports.final_token(final(result.response_id))
    assert (desk.buffered_bytes, in_flight(router), desk.is_idle) == (0, 0, True)


def test_id_zero_names_no_body(desk: Desk) -> None:
    with pytest.raises(InvalidArgument, match="body_stream_id"):
        ask(desk, PickArguments(StreamId(0), ""))


def test_an_answered_pick_consumes_its_body_whatever_the_outcome(desk: Desk) -> None:
    for body in (CHAT, b"not json", b'{"model":"unheard-of","messages":[1]}'):
        stream_id = push(desk, body)
        ask(desk, PickArguments(stream_id, ""))
        with pytest.raises(BodyConsumed):
            ask(desk, PickArguments(stream_id, ""))


@pytest.mark.parametrize("body", [b"", b"not json", b'{"model":"unheard-of","messages":[1]}'])
def test_a_refusal_gives_the_body_back_at_once(desk: Desk, body: bytes) -> None:
    result = pick(desk, body)
    assert (result.destination, result.response_id, result.body_total_bytes) == (None, 0, 0)
    assert result.reason
    assert (desk.buffered_bytes, desk.is_idle) == (0, True)


def test_a_fault_of_our_own_is_not_an_answer_and_consumes_nothing(
    desk: Desk, router: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream_id = push(desk)
    with monkeypatch.context() as broken:
        broken.setattr(router, "weigh", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ask(desk, PickArguments(stream_id, ""))
    assert ask(desk, PickArguments(stream_id, "")).outcome is Outcome.OK


def test_a_rewritten_body_is_counted_and_streamed_at_its_new_length(desk: Desk) -> None:
    body = b'{"model":"gpt","messages":[{"role":"user","content":"hi"}]}'
    result = pick(desk, body)
    assert result.body_total_bytes == len(body) + len("gpt-long-provider-name") - len("gpt")
    assert desk.buffered_bytes == result.body_total_bytes
    assert json.loads(pull(desk, result.response_id))["model"] == "gpt-long-provider-name"
    assert desk.buffered_bytes == 0


def test_a_pool_that_is_not_served_has_no_workers(desk: Desk) -> None:
    arguments = PickArguments(push(desk), "", pool=ObjectRef("default", "elsewhere"))
    result = ask(desk, arguments)
    assert result.outcome is Outcome.NO_WORKERS
    assert "elsewhere" in result.reason


def test_no_ready_endpoint_has_no_workers(desk: Desk, fleet: Fleet) -> None:
    for endpoint in fleet.endpoints():
        fleet.set_ready(endpoint.spec.pool, endpoint.spec.address, ready=False)
    assert pick(desk).outcome is Outcome.NO_WORKERS


def test_an_unpulled_pick_is_reclaimed_with_its_load(desk: Desk, router: Router, advance: Advance) -> None:
    result = pick(desk)
    advance(119.9)
    assert not desk.expire()
    advance(0.1)
    assert desk.expire()
    assert (desk.buffered_bytes, in_flight(router), desk.is_idle) == (0, 0, True)
    assert not desk.reports.abort(result.response_id, AbortReason.NOT_DISPATCHED)


def test_a_dispatched_request_that_nobody_reports_is_reclaimed_after_its_long_time(
    desk: Desk, router: Router, advance: Advance
) -> None:
    result = pick(desk)
    pull(desk, result.response_id)
    advance(3599.0)
    assert not desk.expire()
    assert in_flight(router) == 1
    advance(1.0)
    assert desk.expire()
    assert in_flight(router) == 0
    assert not desk.reports.final_token(final(result.response_id))


def test_a_stored_body_that_nobody_picks_is_reclaimed(desk: Desk, advance: Advance) -> None:
    stream_id = push(desk)
    assert desk.deadline() == 1120.0
    advance(120.0)
    assert desk.expire()
    with pytest.raises(UnknownId):
        ask(desk, PickArguments(stream_id, ""))


def test_a_draining_desk_finishes_what_has_begun(desk: Desk) -> None:
    stream_id = desk.open(None)
    desk.append(stream_id, CHAT)
    desk.drain()
    assert desk.is_draining
    assert not desk.is_idle
    desk.finish(stream_id)
    desk.commit(stream_id)
    result = ask(desk, PickArguments(stream_id, ""))
    assert pull(desk, result.response_id) == CHAT
    assert desk.reports.final_token(final(result.response_id))
    assert desk.is_idle


def test_expired_bodies_go_before_a_push_is_refused(desk: Desk, advance: Advance) -> None:
    for _ in range(8):
        push(desk, b"x" * 1200)
    advance(120.0)
    push(desk, b"y" * 2000)
    assert desk.buffered_bytes == 2000


def test_the_pull_stalled_longest_is_cut_before_a_push_is_refused(desk: Desk, advance: Advance) -> None:
    tickets = []
    for _ in range(7):
        tickets.append(desk.claim(pick(desk).response_id))
        advance(1.0)
    push(desk, b"y" * 2000)
    with pytest.raises(BudgetExceeded, match="took nothing"):
        desk.next_piece(tickets[0])
    assert desk.next_piece(tickets[1]) is not None


def test_a_push_is_refused_when_nothing_can_give_way(desk: Desk) -> None:
    for _ in range(8):
        push(desk, b"x" * 1200)
    with pytest.raises(BudgetExceeded, match="full"):
        push(desk, b"y" * 2000)
    assert desk.buffered_bytes == 9600


def test_gauges_tell_what_is_held(desk: Desk, metrics: Metrics) -> None:
    pick(desk)
    desk.publish()
    page = metrics.exposition().decode()
    assert f"kinference_picker_buffered_bytes {float(len(CHAT))}" in page
    assert "kinference_picker_live_tickets 1.0" in page
    assert 'kinference_picker_picks_total{outcome="ok"} 1.0' in page


def test_the_last_decisions_are_kept_newest_first(desk: Desk) -> None:
    pick(desk)
    pick(desk, b"not json")
    newest, before = desk.flows(10)
    assert (newest.decision.outcome, newest.ended) == (Outcome.BAD_REQUEST, "refused")
    assert (before.decision.outcome, before.ended, before.requested_model) == (Outcome.OK, "", "llama")


def test_behind_many_others_a_request_keeps_what_takes_it_back_and_is_explained_no_more(
    router: Router, limits: PickerLimits, clock: Clock
) -> None:
    desk = Desk(router, replace_dataclass(limits, decisions_max=1), clock, Metrics(), Random(11))
    picked = pick(desk)
    (flow,) = desk.flows(1)
    assert router.explain(flow.decision).candidates
    refused = pick(desk, b"not json")
    assert refused.outcome is Outcome.BAD_REQUEST
    assert not router.explain(flow.decision).candidates
    assert sum(row.prefix_blocks for row in router.snapshot(0.0)) > 0
    desk.reports.abort(picked.response_id, AbortReason.NOT_DISPATCHED)
    assert sum(row.prefix_blocks for row in router.snapshot(0.0)) == 0


def test_behind_many_others_a_request_that_nobody_pulled_goes_on_as_any_other(
    router: Router, limits: PickerLimits, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(router, replace_dataclass(limits, decisions_max=1), clock, Metrics(), Random(11))
    first = pick(desk, remote=True)
    pulling = desk.claim(pick(desk, remote=True).response_id)
    pick(desk, b"not json")
    assert isinstance(pulling.kept, bytes)
    with caplog.at_level(logging.INFO):
        for response_id in (first.response_id, pulling.response_id):
            if response_id == first.response_id:
                assert pull(desk, response_id) == CHAT
            assert desk.reports.first_token(FirstTokenReport(response_id, 15, 200))
            assert desk.reports.final_token(final(response_id))
    told = [record.__dict__ for record in caplog.records if record.message == "flow ended"]
    assert [(one["tenant"], one["client_request_id"], one["ended"], one["observed_ttft_ms"]) for one in told] == [
        ("acme", "req-1", "final", 15)
    ] * 2
    assert in_flight(router) == 0


def test_what_waits_behind_many_others_costs_few_small_objects(router: Router, clock: Clock) -> None:
    def small_objects() -> int:
        gc.collect()
        return sys.getallocatedblocks()

    limits, count = PickerLimits(decisions_max=8, admission=AdmissionRules(enabled=False)), 500
    desk = Desk(router, limits, clock, Metrics(), Random(11))
    for number in range(100):
        pick(desk, SHORT % number)
    before = small_objects()
    for number in range(100, 100 + count):
        pick(desk, SHORT % number)
    each = (small_objects() - before) / count
    assert each < SMALL_OBJECTS_MAX


def test_packing_changes_nothing_that_can_be_asked(desk: Desk) -> None:
    picked, pushed = pick(desk), push(desk)
    pick(desk, b"not json")
    assert desk.surplus_bytes > 0
    desk.pack()
    assert desk.surplus_bytes == 0
    assert [flow.ended for flow in desk.flows(9)] == ["refused", ""]
    assert pull(desk, picked.response_id)
    assert desk.reports.final_token(FinalTokenReport(picked.response_id, "llama", 100, 20))
    assert ask(desk, PickArguments(pushed, "acme")).response_id


LIMITED = RoutingRules(
    tenants=(TenantRule(("acme",), limits=Limits(requests_per_minute=9, tokens_per_minute=500, concurrent=1)),)
)


@pytest.mark.parametrize("end", ["final", "abort", "unpulled", "unreported"])
def test_a_limited_tenants_place_is_free_again_however_its_request_ends(
    desk: Desk, router: Router, advance: Advance, end: str
) -> None:
    router.reconfigure(LIMITED)
    first = pick(desk)
    assert first.requests is not None
    assert (first.requests.limit, first.requests.remaining) == (9, 8)
    refused = pick(desk)
    assert (refused.outcome, refused.response_id, refused.body_total_bytes) == (Outcome.POLICY_REJECTED, 0, 0)
    assert refused.reason.startswith("quota: tenant 'acme' is at its concurrent of 1")
    if end == "final":
        desk.reports.final_token(final(first.response_id))
        advance(60.0)  # what it used has flowed back
    elif end == "abort":
        desk.reports.abort(first.response_id, AbortReason.NOT_DISPATCHED)
    elif end == "unpulled":
        advance(desk.limits.body_ttl + 1)
    else:
        pull(desk, first.response_id)
        advance(desk.limits.ticket_ttl + 1)
    while desk.expire():
        pass
    assert pick(desk).outcome is Outcome.OK


def test_g12_tokens_used_beyond_the_limit_refuse_the_next_and_say_for_how_long(desk: Desk, router: Router) -> None:
    router.reconfigure(LIMITED)
    first = pick(desk)
    desk.reports.final_token(FinalTokenReport(first.response_id, "llama", 600, 150))  # 750 of 500 a minute
    refused = pick(desk)
    assert refused.outcome is Outcome.POLICY_REJECTED
    assert refused.reason.startswith("quota: tenant 'acme' is at its tokens_per_minute of 500")
    assert refused.retry_after is not None
    assert refused.retry_after > 250 / 500 * 60
    assert refused.tokens is not None
    assert refused.tokens.remaining == 0


@pytest.mark.usefixtures("desk")
def test_what_may_be_reclaimed_or_wait_is_shown_before_any_has_been(metrics: Metrics) -> None:
    page = metrics.exposition().decode()
    for what in ("body", "unpulled", "pull", "ticket", "stalled_pull"):
        assert f'kinference_picker_expired_total{{what="{what}"}} 0.0' in page
    for qos in QosClass:
        assert f'kinference_admission_waiting{{class="{qos.name.lower()}"}} 0.0' in page


def test_refusals_and_money_are_counted_by_tenant(desk: Desk, router: Router, metrics: Metrics, fleet: Fleet) -> None:
    prices = (PricedModel("*", Price(1_000.0, 2_000.0)),)
    fleet.set_backends([BackendSpec(ObjectRef("default", "cloud"), Api.OPENAI_CHAT, {"gpt": "gpt"}, prices=prices)])
    router.reconfigure(LIMITED)
    body = CHAT.replace(b"llama", b"gpt")
    first = pick(desk, body)
    pick(desk, body)
    desk.reports.final_token(FinalTokenReport(first.response_id, "gpt", 300, 100))
    desk.publish()
    desk.publish()
    page = metrics.exposition().decode()
    assert 'kinference_tenant_limit_refusals_total{limit="concurrent",tenant="acme"} 1.0' in page
    assert 'kinference_tenant_spent_usd_total{tenant="acme"} 0.5' in page
    assert 'kinference_tenant_unpriced_requests_total{tenant="acme"} 0.0' in page


def test_what_leads_the_answer_to_a_translated_body_back_is_told_with_it(desk: Desk, fleet: Fleet) -> None:
    fleet.set_backends([BackendSpec(ObjectRef("default", "cloud"), Api.ANTHROPIC_MESSAGES, {"gpt": "gpt"})])
    arguments = msgspec.structs.replace(PLACED, translates=True)
    placed = desk.place(CHAT.replace(b"llama", b"gpt"), arguments)
    assert isinstance(placed, Placed)
    assert isinstance(placed.way_back, WayBack)
    assert placed.way_back.back.destination is Api.ANTHROPIC_MESSAGES
    assert place(desk, CHAT).way_back is None


def feed_all(fleet: Fleet) -> None:
    """Every engine tells of its cache."""
    for pool in fleet.pools():
        fleet.set_pool(pool, [dataclasses.replace(one.spec, cache_feed=CacheFeed(5557)) for one in fleet.endpoints()])


def test_who_listens_is_told_of_each_prompt_that_goes_to_an_engine_that_tells_of_its_cache(
    desk: Desk, fleet: Fleet
) -> None:
    told: list[tuple[SentPrompt, bytes, str]] = []
    desk.on_dispatch(lambda sent, body, path: told.append((sent, body, path)))
    pick(desk)
    assert told == []
    feed_all(fleet)
    pick(desk)
    pick(desk, b'{"model":"unknown","messages":[]}')
    ((sent, body, path),) = told
    assert (body, path, len(sent.blocks)) == (CHAT, "", len(CHAT) // 512)


# --- bodies that their caller holds --------------------------------------------------------------

PLACED = PickArguments(StreamId(0), "acme", "req-1", request_path="/v1/chat/completions")


def test_a_placed_body_is_on_its_way_and_counted_no_more(desk: Desk, router: Router) -> None:
    placed = place(desk, CHAT)
    assert (placed.picked.outcome, placed.body) == (Outcome.OK, CHAT)
    assert (in_flight(router), desk.buffered_bytes, desk.is_idle) == (1, 0, False)
    with pytest.raises(UnknownId):
        pull(desk, placed.picked.response_id)
    assert desk.reports.final_token(final(placed.picked.response_id))
    assert (in_flight(router), desk.is_idle) == (0, True)


def test_a_body_that_nobody_takes_is_not_handed_back(desk: Desk) -> None:
    placed = place(desk, b"{")
    assert (placed.picked.outcome, placed.picked.response_id, placed.body) == (Outcome.BAD_REQUEST, 0, b"")
    assert desk.is_idle
    assert desk.flows(1)[0].ended == "refused"


def test_a_placed_body_is_rewritten_for_its_destination(desk: Desk) -> None:
    placed = place(desk, CHAT.replace(b"llama", b"gpt"))
    assert b"gpt-long-provider-name" in placed.body


def test_it_is_told_what_a_placed_body_says_of_its_usage(desk: Desk) -> None:
    assert place(desk, CHAT).usage is StreamUsage.SETTLED
    assert place(desk, CHAT.replace(b"{", b'{"stream":true,', 1)).usage is StreamUsage.NOT_ASKED


def test_it_is_told_whether_a_placed_body_asks_for_a_stream(desk: Desk) -> None:
    assert place(desk, CHAT).streams is False
    assert place(desk, CHAT.replace(b"{", b'{"stream":true,', 1)).streams is True


def test_a_placed_request_that_nobody_reports_is_reclaimed_after_its_long_time(
    desk: Desk, router: Router, advance: Advance
) -> None:
    place(desk, CHAT)
    advance(desk.limits.body_ttl + 1)
    assert not desk.expire()
    advance(desk.limits.ticket_ttl)
    assert desk.expire()
    assert (in_flight(router), desk.is_idle) == (0, True)


def test_bytes_held_elsewhere_count_and_make_what_is_over_give_way(desk: Desk, advance: Advance) -> None:
    push(desk, b"x" * 2000)
    desk.hold(4000)
    with pytest.raises(BudgetExceeded):
        desk.make_room(4001)
    with pytest.raises(BudgetExceeded):
        desk.hold(4001)
    assert desk.buffered_bytes == 6000
    advance(desk.limits.body_ttl)
    desk.hold(6000)
    assert desk.buffered_bytes == 10_000
    desk.let_go(10_000)
    assert desk.buffered_bytes == 0


def test_who_listens_is_told_of_a_placed_body_as_it_is_sent(desk: Desk, fleet: Fleet) -> None:
    feed_all(fleet)
    told: list[tuple[bytes, str]] = []
    desk.on_dispatch(lambda _sent, body, path: told.append((body, path)))
    placed = place(desk, CHAT.replace(b"llama", b"small"))
    place(desk, b"{")
    assert told == [(placed.body, PLACED.request_path)]
    assert placed.body == CHAT


def test_an_open_circuit_shows_in_the_metrics_and_in_the_log_and_goes_again(
    desk: Desk, fleet: Fleet, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    picked = pick(desk, CHAT.replace(b"llama", b"gpt"))
    desk.reports.abort(picked.response_id, AbortReason.BACKEND_UNAUTHORIZED)
    desk.publish()
    assert 'kinference_picker_circuit_open{destination="default/cloud"} 1.0' in metrics.exposition().decode()
    assert "default/cloud is left alone: a caller had no valid credential for it" in caplog.messages
    fleet.set_backends([replace_dataclass(fleet.backends()[0], revision="another")])
    desk.publish()
    assert 'kinference_picker_circuit_open{destination="default/cloud"} 0.0' in metrics.exposition().decode()


def test_a_drain_shows_in_the_metrics_and_goes_again(desk: Desk, fleet: Fleet, metrics: Metrics) -> None:
    spec = fleet.endpoints()[0].spec
    row = f'kinference_picker_draining{{destination="{spec.pool}/{spec.address}"}}'
    desk.publish()
    assert row not in metrics.exposition().decode()
    for draining in (True, False):
        fleet.set_draining(spec.pool, spec.address, draining)
        desk.publish()
        assert f"{row} {float(draining)}" in metrics.exposition().decode()

import pytest

from kinference.sim.events import (
    Admitted,
    BlocksRemoved,
    BlocksStored,
    Event,
    Finished,
    FirstToken,
    NextTokens,
    Preempted,
    SimRequest,
)
from kinference.sim.kv_cache import BlockHash
from kinference.sim.model import EngineModel
from kinference.sim.timing import Timing

EASY = Timing(
    prefill_tokens_per_s=1000,
    decode_ms=10,
    decode_ms_per_sequence=0,
    decode_ms_per_1k_context=0,
    batched_tokens_max=100,
    sequences_max=8,
    kv_blocks=100,
    block_tokens=10,
)


def request(number: int, prompt: int, output: int, family: int | None = None) -> SimRequest:
    """Requests of one family have the same tokens, as far as they go."""
    start = (number if family is None else family) * 1000
    blocks = tuple(BlockHash(start + place) for place in range((prompt + output) // 10))
    return SimRequest(number, prompt, output, blocks)


def run_out(model: EngineModel) -> list[Event]:
    events: list[Event] = []
    while (at := model.next_event_at()) is not None:
        events += model.advance(at)
    return events


def times(events: list[Event], kind: type[Event], number: int) -> list[float]:
    return [event.at for event in events if isinstance(event, kind) and getattr(event, "request", None) == number]


def said(events: list[Event], number: int) -> int:
    """Tokens that a request got."""
    first = len(times(events, FirstToken, number))
    return first + sum(1 for event in events if isinstance(event, NextTokens) and number in event.requests)


def test_a_lone_request_takes_its_prefill_and_then_a_step_a_token() -> None:
    model = EngineModel(EASY)
    model.submit(request(1, 50, 3), now=1.0)
    events = run_out(model)
    assert times(events, FirstToken, 1) == [pytest.approx(1.05)]
    assert times(events, Finished, 1) == [pytest.approx(1.07)]
    assert said(events, 1) == 3


def test_a_long_prompt_is_computed_in_chunks() -> None:
    model = EngineModel(EASY)
    model.submit(request(1, 250, 1), now=0.0)
    assert model.next_event_at() == pytest.approx(0.1)
    assert times(run_out(model), FirstToken, 1) == [pytest.approx(0.25)]


def test_a_second_turn_computes_only_what_is_new() -> None:
    model = EngineModel(EASY)
    model.submit(request(1, 50, 10, family=7), now=0.0)
    run_out(model)
    model.submit(request(2, 80, 1, family=7), now=10.0)
    events = run_out(model)
    admitted = next(event for event in events if isinstance(event, Admitted))
    assert admitted.cached_tokens == 50  # the answer's last token was never computed, so its block is not full
    assert times(events, FirstToken, 2) == [pytest.approx(10.03)]
    assert (model.totals.prefix_queries, model.totals.prefix_hits) == (130, 50)


def test_a_fully_cached_prompt_still_computes_its_last_block() -> None:
    model = EngineModel(EASY)
    for number in (1, 2):
        model.submit(request(number, 50, 1, family=7), now=0.0)
        events = run_out(model)
    admitted = next(event for event in events if isinstance(event, Admitted))
    assert admitted.cached_tokens == 40


def test_requests_that_run_together_share_each_step() -> None:
    model = EngineModel(EASY)
    model.submit(request(1, 10, 5), now=0.0)
    model.submit(request(2, 10, 5), now=0.0)
    events = run_out(model)
    assert said(events, 1) == said(events, 2) == 5
    assert any(event.requests == (1, 2) for event in events if isinstance(event, NextTokens))


def test_a_chunk_of_a_prompt_slows_those_who_decode() -> None:
    model = EngineModel(EASY)
    model.submit(request(1, 10, 3), now=0.0)
    model.submit(request(2, 99, 1), now=0.0)
    events = run_out(model)
    second = next(event.at for event in events if isinstance(event, NextTokens))
    assert second == pytest.approx(0.01 + 0.099)


def test_requests_wait_their_turn_when_the_batch_is_full() -> None:
    model = EngineModel(Timing(sequences_max=1))
    for number in (1, 2, 3):
        model.submit(request(number, 20, 4), now=0.0)
    assert (model.running, model.waiting) == (1, 2)
    finished = [event.request for event in run_out(model) if isinstance(event, Finished)]
    assert finished == [1, 2, 3]


def test_an_embedding_finishes_without_a_token() -> None:
    model = EngineModel(EASY)
    model.submit(SimRequest(1, 40, 0), now=0.0)
    events = run_out(model)
    assert times(events, Finished, 1) == [pytest.approx(0.04)]
    assert said(events, 1) == 0
    assert model.totals.prompt_tokens == 40


def test_the_youngest_is_preempted_when_blocks_run_out_and_still_says_all() -> None:
    model = EngineModel(Timing(kv_blocks=6, block_tokens=10))
    model.submit(request(1, 20, 30), now=0.0)
    model.submit(request(2, 20, 30), now=0.0)
    events = run_out(model)
    assert [event.request for event in events if isinstance(event, Preempted)] == [2]
    assert (said(events, 1), said(events, 2)) == (30, 30)
    assert model.totals.preemptions == 1
    assert model.totals.generated_tokens == 60
    assert model.kv_usage == 0


def test_a_prompt_that_finds_no_block_for_its_next_chunk_is_preempted_itself() -> None:
    model = EngineModel(Timing(batched_tokens_max=40, sequences_max=8, kv_blocks=12, block_tokens=10))
    model.submit(request(1, 60, 50), now=0.0)
    model.submit(request(2, 100, 1), now=0.0)
    events = run_out(model)
    assert {event.request for event in events if isinstance(event, Preempted)} == {2}
    assert (said(events, 1), said(events, 2)) == (50, 1)


def test_stored_blocks_are_told_once_and_evicted_ones_too() -> None:
    model = EngineModel(Timing(kv_blocks=6, block_tokens=10))
    model.submit(request(1, 45, 1), now=0.0)
    stored = [event for event in run_out(model) if isinstance(event, BlocksStored)]
    assert [(event.request, event.first, event.count) for event in stored] == [(1, 0, 4)]
    model.submit(request(2, 45, 1), now=1.0)
    events = run_out(model)
    removed = [block for event in events if isinstance(event, BlocksRemoved) for block in event.blocks]
    assert removed == [1003, 1002, 1001]


def test_blocks_of_the_answer_are_stored_as_they_fill() -> None:
    model = EngineModel(EASY)
    model.submit(request(1, 15, 20), now=0.0)
    stored = [(event.first, event.count) for event in run_out(model) if isinstance(event, BlocksStored)]
    assert stored == [(0, 1), (1, 1), (2, 1)]


def test_requests_of_one_prefix_that_start_together_compute_it_once() -> None:
    model = EngineModel(Timing(block_tokens=10))
    model.submit(request(9, 10, 2), now=0.0)
    for number in (1, 2):
        model.submit(request(number, 50, 1, family=7), now=0.0)
    cached = {event.request: event.cached_tokens for event in run_out(model) if isinstance(event, Admitted)}
    assert cached == {9: 0, 1: 0, 2: 40}


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_aborting_gives_everything_back_wherever_the_request_is(steps: int) -> None:
    model = EngineModel(EASY)
    model.submit(request(1, 150, 20), now=0.0)
    for _ in range(steps):
        at = model.next_event_at()
        assert at is not None
        model.advance(at)
    assert model.abort(1)
    assert not model.abort(1)
    assert (model.running, model.kv_usage) == (0, 0)
    assert times(run_out(model), Finished, 1) == []
    assert model.next_event_at() is None


def test_aborting_a_waiting_request_takes_it_from_the_queue() -> None:
    model = EngineModel(Timing(sequences_max=1))
    model.submit(request(1, 20, 4), now=0.0)
    model.submit(request(2, 20, 4), now=0.0)
    assert model.abort(2)
    assert model.waiting == 0
    assert said(run_out(model), 2) == 0


def test_a_slowdown_stretches_steps() -> None:
    model = EngineModel(EASY)
    model.slowdown = 3.0
    model.submit(request(1, 50, 1), now=0.0)
    assert model.next_event_at() == pytest.approx(0.15)


def test_the_prefix_cache_can_be_reset_while_idle() -> None:
    model = EngineModel(EASY)
    first = request(1, 50, 1)
    model.submit(first, now=0.0)
    assert not model.reset_prefix_cache()
    run_out(model)
    assert model.cached_tokens(first) == 40
    assert model.reset_prefix_cache()
    assert model.cached_tokens(first) == 0


def test_what_can_never_fit_is_the_callers_fault() -> None:
    with pytest.raises(AssertionError):
        EngineModel(EASY).submit(request(1, 1000, 1), now=0.0)

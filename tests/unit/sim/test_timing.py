import pytest

from kinference.sim.timing import Timing


def test_a_prompts_step_takes_as_long_as_its_tokens_at_the_prefill_rate() -> None:
    assert Timing(prefill_tokens_per_s=1000).step_s(500, 0, 0) == pytest.approx(0.5)


def test_a_step_is_never_shorter_than_one_pass_over_the_weights() -> None:
    assert Timing(decode_ms=8).step_s(1, 0, 0) == pytest.approx(0.008)


def test_decoding_slows_down_with_the_batch_and_with_its_context() -> None:
    timing = Timing(decode_ms=8, decode_ms_per_sequence=0.5, decode_ms_per_1k_context=0.1)
    assert timing.step_s(0, 4, 20_000) == pytest.approx(0.012)


@pytest.mark.parametrize(
    "wrong",
    [
        {"prefill_tokens_per_s": 0},
        {"decode_ms": 0},
        {"kv_blocks": 0},
        {"block_tokens": 0},
        {"sequences_max": 0},
        {"batched_tokens_max": 8, "sequences_max": 9},
    ],
)
def test_what_no_engine_could_have_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"greater than 0|every one"):
        Timing(**wrong)

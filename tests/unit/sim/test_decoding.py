from kinference.sim.decoding import DecodeBatch, Sequence
from kinference.sim.events import SimRequest


def decoder(number: int, computed: int, output_tokens: int = 10) -> Sequence:
    """A sequence right after its prompt, with its first token said."""
    sequence = Sequence(SimRequest(number, computed, output_tokens))
    sequence.computed, sequence.generated, sequence.total = computed, 1, computed + 1
    return sequence


def steps_needing_a_block(batch: DecodeBatch, steps: int) -> list[int]:
    needing = []
    for step in range(1, steps + 1):
        needing += [step for _ in batch.needing()]
        batch.step()
    return needing


def test_a_block_is_needed_each_time_the_last_one_is_full() -> None:
    batch = DecodeBatch(4)
    batch.join(decoder(1, computed=6))
    assert steps_needing_a_block(batch, 12) == [3, 7, 11]


def test_a_prompt_that_ends_with_its_block_needs_one_at_once() -> None:
    batch = DecodeBatch(4)
    batch.join(decoder(1, computed=8))
    assert steps_needing_a_block(batch, 8) == [1, 5]


def test_a_block_is_full_on_the_step_that_computes_its_last_token() -> None:
    batch = DecodeBatch(4)
    sequence = decoder(1, computed=6)
    batch.join(sequence)
    assert batch.step() == []
    assert batch.step() == [sequence]


def test_a_sequence_ends_after_its_last_token() -> None:
    batch = DecodeBatch(4)
    sequence = decoder(1, computed=6, output_tokens=3)
    batch.join(sequence)
    batch.step()
    assert batch.ending() == []
    batch.step()
    assert batch.ending() == [sequence]


def test_leaving_brings_the_counters_up_to_date() -> None:
    batch = DecodeBatch(4)
    batch.join(decoder(1, computed=6))
    for _ in range(5):
        batch.step()
    left = batch.leave(1)
    assert left is not None
    assert (left.computed, left.generated, left.total) == (11, 6, 12)
    assert (len(batch), batch.context_tokens) == (0, 0)
    assert batch.leave(1) is None


def test_what_was_noted_for_a_sequence_that_left_is_void_when_it_comes_back() -> None:
    batch = DecodeBatch(4)
    sequence = decoder(1, computed=6)
    batch.join(sequence)
    batch.step()
    batch.leave(1)
    batch.step()  # others may go on meanwhile
    batch.join(sequence)
    assert steps_needing_a_block(batch, 6) == [2, 6]


def test_the_youngest_is_who_joined_last() -> None:
    batch = DecodeBatch(4)
    batch.join(decoder(2, computed=6))
    batch.join(decoder(1, computed=6))
    assert batch.youngest() == 1
    assert batch.ids == (2, 1)
    assert 2 in batch


def test_the_context_is_what_all_members_have_computed() -> None:
    batch = DecodeBatch(4)
    batch.join(decoder(1, computed=6))
    batch.join(decoder(2, computed=10))
    batch.step()
    assert batch.context_tokens == 18

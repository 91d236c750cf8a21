"""How long one step of an engine takes, and how much fits into it."""

from dataclasses import dataclass

from kinference.ids import Milliseconds, Seconds


@dataclass(frozen=True, slots=True)
class Timing:
    """The parameters of one engine. The defaults are those of a mid-size model on one data-centre GPU."""

    prefill_tokens_per_s: float = 16_000.0
    decode_ms: Milliseconds = 8.0
    decode_ms_per_sequence: Milliseconds = 0.1
    decode_ms_per_1k_context: Milliseconds = 0.02
    batched_tokens_max: int = 2048
    sequences_max: int = 256
    kv_blocks: int = 16_384
    block_tokens: int = 16

    def __post_init__(self) -> None:
        for name in ("prefill_tokens_per_s", "decode_ms", "batched_tokens_max", "sequences_max"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} has to be greater than 0")
        if self.kv_blocks <= 0 or self.block_tokens <= 0:
            raise ValueError("kv_blocks and block_tokens have to be greater than 0")
        if self.sequences_max > self.batched_tokens_max:
            raise ValueError("batched_tokens_max has to allow every one of sequences_max a token in a step")

    @property
    def capacity_tokens(self) -> int:
        """Tokens of one request alone that fit into the KV cache."""
        return self.kv_blocks * self.block_tokens

    def step_s(self, prefill_tokens: int, decodes: int, context_tokens: int) -> Seconds:
        """One pass over the weights. Prompt tokens are computed while the weights stream by, so the longer of the two
        counts; sequences that decode add their own bit, and the context that each of them reads back.
        """
        weights_s = max(self.decode_ms / 1e3, prefill_tokens / self.prefill_tokens_per_s)
        decode_ms = decodes * self.decode_ms_per_sequence + context_tokens / 1e3 * self.decode_ms_per_1k_context
        return weights_s + decode_ms / 1e3

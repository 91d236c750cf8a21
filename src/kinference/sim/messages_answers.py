"""Answers of `/v1/messages`, Anthropic's API."""

import msgspec

from kinference.sim.answers import Head, Usage, named_sse

STOP_REASONS = {"stop": "end_turn", "length": "max_tokens"}


class MessagesWriter:
    """The final `input_tokens` leaves out what came from the cache, as this API counts."""

    def __init__(self, head: Head) -> None:
        self._head = head

    def opening(self) -> list[bytes]:
        started = self._message([], None, {"input_tokens": self._head.prompt_tokens, "output_tokens": 0})
        block = {"type": "text", "text": ""}
        return [
            named_sse({"type": "message_start", "message": started}),
            named_sse({"type": "content_block_start", "content_block": block, "index": 0}),
        ]

    def word(self, text: str) -> bytes:
        return named_sse({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}, "index": 0})

    def last_word(self, text: str) -> bytes:
        return self.word(text)

    def closing(self, usage: Usage) -> list[bytes]:
        delta = {"stop_reason": STOP_REASONS[self._head.finish], "stop_sequence": None}
        return [
            named_sse({"type": "content_block_stop", "index": 0}),
            named_sse({"type": "message_delta", "delta": delta, "usage": _usage(usage)}),
            named_sse({"type": "message_stop"}),
        ]

    def whole(self, text: str, usage: Usage) -> bytes:
        content = [{"type": "text", "text": text}]
        return msgspec.json.encode(self._message(content, STOP_REASONS[self._head.finish], _usage(usage)))

    def _message(self, content: list[dict[str, str]], stop: str | None, usage: dict[str, int]) -> dict[str, object]:
        return {
            "id": f"chatcmpl-{self._head.number}",
            "type": "message",
            "role": "assistant",
            "content": content,
            "model": self._head.model,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage,
        }


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.prompt_tokens - usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
    }

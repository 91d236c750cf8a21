"""Answers of `/v1/chat/completions` and `/v1/completions`."""

import msgspec

from kinference.sim.answers import DONE, FINGERPRINT, Head, Usage, openai_usage, sse


class ChatWriter:
    def __init__(self, head: Head) -> None:
        self._head = head

    def opening(self) -> list[bytes]:
        choice = {
            "index": 0,
            "delta": {"role": "assistant", "content": ""},
            "logprobs": None,
            "finish_reason": None,
        }
        return [sse({**self._chunk([choice]), "prompt_token_ids": None, "prompt_text": None})]

    def word(self, text: str) -> bytes:
        return sse(self._chunk([self._choice(text, None)]))

    def last_word(self, text: str) -> bytes:
        return sse(self._chunk([self._choice(text, self._head.finish)]))

    def closing(self, usage: Usage) -> list[bytes]:
        if not self._head.include_usage:
            return [DONE]
        return [sse({**self._chunk([]), "usage": openai_usage(usage), "system_fingerprint": FINGERPRINT}), DONE]

    def whole(self, text: str, usage: Usage) -> bytes:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text, "refusal": None, "annotations": None, "tool_calls": []},
            "logprobs": None,
            "finish_reason": self._head.finish,
            "stop_reason": None,
        }
        return msgspec.json.encode(
            {
                "id": f"chatcmpl-{self._head.number}",
                "object": "chat.completion",
                "created": self._head.created,
                "model": self._head.model,
                "choices": [choice],
                "usage": openai_usage(usage),
                "system_fingerprint": FINGERPRINT,
            }
        )

    def _choice(self, word: str, finish: str | None) -> dict[str, object]:
        choice: dict[str, object] = {"index": 0, "delta": {"content": word}, "logprobs": None, "finish_reason": finish}
        if finish is not None:
            choice["stop_reason"] = None
        return {**choice, "token_ids": None}

    def _chunk(self, choices: list[dict[str, object]]) -> dict[str, object]:
        return {
            "id": f"chatcmpl-{self._head.number}",
            "object": "chat.completion.chunk",
            "created": self._head.created,
            "model": self._head.model,
            "choices": choices,
        }


class CompletionWriter:
    def __init__(self, head: Head) -> None:
        self._head = head

    def opening(self) -> list[bytes]:
        return []

    def word(self, text: str) -> bytes:
        return sse(self._body([self._choice(text, None)]))

    def last_word(self, text: str) -> bytes:
        return sse(self._body([self._choice(text, self._head.finish)]))

    def closing(self, usage: Usage) -> list[bytes]:
        if not self._head.include_usage:
            return [DONE]
        return [sse({**self._body([]), "usage": openai_usage(usage), "system_fingerprint": FINGERPRINT}), DONE]

    def whole(self, text: str, usage: Usage) -> bytes:
        body = self._body([self._choice(text, self._head.finish)])
        return msgspec.json.encode({**body, "usage": openai_usage(usage), "system_fingerprint": FINGERPRINT})

    def _choice(self, text: str, finish: str | None) -> dict[str, object]:
        return {"index": 0, "text": text, "logprobs": None, "finish_reason": finish, "stop_reason": None}

    def _body(self, choices: list[dict[str, object]]) -> dict[str, object]:
        return {
            "id": f"cmpl-{self._head.number}",
            "object": "text_completion",
            "created": self._head.created,
            "model": self._head.model,
            "choices": choices,
        }

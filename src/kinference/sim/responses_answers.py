"""Answers of `/v1/responses`: one message of text, whole or as the events of its making."""

from itertools import count

import msgspec

from kinference.sim.answers import Head, Usage, named_sse


class ResponsesWriter:
    def __init__(self, head: Head) -> None:
        self._head = head
        self._sequence = count()
        self._said: list[str] = []
        self._item_id = f"msg_{head.number}"
        self._status = "completed" if head.finish == "stop" else "incomplete"

    def opening(self) -> list[bytes]:
        response = self._response("in_progress", [], None)
        return [
            self._event("response.created", {"response": response}),
            self._event("response.in_progress", {"response": response}),
            self._event("response.output_item.added", {"output_index": 0, "item": self._item("in_progress", None)}),
            self._event("response.content_part.added", self._in_part({"part": _part("")})),
        ]

    def word(self, text: str) -> bytes:
        self._said.append(text)
        return self._event("response.output_text.delta", self._in_part({"delta": text, "logprobs": []}))

    def last_word(self, text: str) -> bytes:
        return self.word(text)

    def closing(self, usage: Usage) -> list[bytes]:
        text = "".join(self._said)
        item = self._item(self._status, text)
        kind = f"response.{self._status}"
        return [
            self._event("response.output_text.done", self._in_part({"text": text, "logprobs": []})),
            self._event("response.content_part.done", self._in_part({"part": _part(text)})),
            self._event("response.output_item.done", {"output_index": 0, "item": item}),
            self._event(kind, {"response": self._response(self._status, [item], usage)}),
        ]

    def whole(self, text: str, usage: Usage) -> bytes:
        return msgspec.json.encode(self._response(self._status, [self._item(self._status, text)], usage))

    def _event(self, kind: str, fields: dict[str, object]) -> bytes:
        return named_sse({"type": kind, "sequence_number": next(self._sequence), **fields})

    def _in_part(self, fields: dict[str, object]) -> dict[str, object]:
        return {"item_id": self._item_id, "output_index": 0, "content_index": 0, **fields}

    def _item(self, status: str, text: str | None) -> dict[str, object]:
        return {
            "id": self._item_id,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": [] if text is None else [_part(text)],
        }

    def _response(self, status: str, output: list[dict[str, object]], usage: Usage | None) -> dict[str, object]:
        return {
            "id": f"resp_{self._head.number}",
            "object": "response",
            "created_at": self._head.created,
            "status": status,
            "model": self._head.model,
            "output": output,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": None,
            "metadata": None,
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "usage": None if usage is None else _usage(usage),
        }


def _part(text: str) -> dict[str, object]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": None}


def _usage(usage: Usage) -> dict[str, object]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total_tokens,
    }

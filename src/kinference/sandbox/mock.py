"""Answers of `mock://` routes: no network, the route's own model, the same text each time."""

import msgspec

TEXT = "Hello from openshell mock backend"
"""Tests of the original look for it."""
_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def mock_answer(protocol: str, model: str) -> bytes:
    """The JSON that an endpoint of a protocol would answer."""
    return msgspec.json.encode(_answer(protocol, model))


def _answer(protocol: str, model: str) -> object:
    match protocol:
        case "openai_chat_completions":
            message = {"role": "assistant", "content": TEXT}
            choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
            return {**_head("chat.completion", model), "choices": choices, "usage": _USAGE}
        case "openai_completions":
            choices = [{"index": 0, "text": TEXT, "finish_reason": "stop"}]
            return {**_head("text_completion", model), "choices": choices, "usage": _USAGE}
        case "anthropic_messages":
            content, usage = [{"type": "text", "text": TEXT}], {"input_tokens": 1, "output_tokens": 1}
            head = {"id": "msg-mock", "type": "message", "role": "assistant", "model": model}
            return {**head, "content": content, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
        case "openai_embeddings":
            data = [{"object": "embedding", "index": 0, "embedding": [0.0, 0.0, 0.0]}]
            return {"object": "list", "data": data, "model": model, "usage": {"prompt_tokens": 1, "total_tokens": 1}}
        case "model_discovery":
            return {"object": "list", "data": [{"id": model, "object": "model", "created": 0, "owned_by": "mock"}]}
        case _:
            return {"model": model, "text": TEXT}


def _head(kind: str, model: str) -> dict[str, object]:
    return {"id": "mock", "object": kind, "created": 0, "model": model}

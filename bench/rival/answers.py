"""Whole answers as destinations give them, of about a given size, the same on every run."""

import json
from collections.abc import Callable
from typing import Any

from rival.conversations import CODE, MODEL, PROSE  # type: ignore[import-not-found] # the file beside this one

Content = list[tuple[str, Any]]
"""Words, and the arguments of calls, in order."""


def one_text(size: int) -> Content:
    return [("text", PROSE * (size // len(PROSE)))]


def calls(size: int) -> Content:
    """What a coding agent is told to do: a file to be written, and two to be looked at."""
    written = {"path": "src/module.py", "text": CODE * (size // len(json.dumps(CODE))), "mode": "write"}
    looks: Content = [("call", {"path": f"src/module_{at}.py", "lines": [1, 80]}) for at in range(2)]
    return [("text", "Let me mend it."), ("call", written), *looks]


ANSWERS: dict[str, Callable[[int], Content]] = {"one text": one_text, "calls": calls}


def of_messages(content: Content) -> bytes:
    blocks: list[Any] = [
        {"type": "text", "text": value}
        if kind == "text"
        else {"type": "tool_use", "id": f"toolu_{at:020}", "name": "tool_0", "input": value}
        for at, (kind, value) in enumerate(content)
    ]
    usage = {
        "input_tokens": 900,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 600,
        "output_tokens": 90,
        "service_tier": "standard",
    }
    return _written(
        {
            "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": blocks,
            "stop_reason": "tool_use" if len(blocks) > 1 else "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }
    )


def of_gemini(content: Content) -> bytes:
    parts: list[Any] = [
        {"text": value} if kind == "text" else {"functionCall": {"name": "tool_0", "args": value}}
        for kind, value in content
    ]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    usage = {
        "promptTokenCount": 900,
        "candidatesTokenCount": 90,
        "totalTokenCount": 990,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 900}],
    }
    return _written(
        {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": "gemini-2.5-pro",
            "responseId": "mAitaLmkHPPlz7IPvtfUqQ4",
        }
    )


def of_converse(content: Content) -> bytes:
    blocks: list[Any] = [
        {"text": value}
        if kind == "text"
        else {"toolUse": {"toolUseId": f"tooluse_{at:020}", "name": "tool_0", "input": value}}
        for at, (kind, value) in enumerate(content)
    ]
    return _written(
        {
            "output": {"message": {"role": "assistant", "content": blocks}},
            "stopReason": "tool_use" if len(blocks) > 1 else "end_turn",
            "usage": {"inputTokens": 900, "outputTokens": 90, "totalTokens": 990},
            "metrics": {"latencyMs": 512},
        }
    )


DESTINATIONS: dict[str, Callable[[Content], bytes]] = {
    "messages": of_messages,
    "gemini": of_gemini,
    "converse": of_converse,
}


def _written(answer: object) -> bytes:
    return json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode()

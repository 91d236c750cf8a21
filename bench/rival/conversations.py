"""Chat bodies as clients send them, of about a given size, the same on every run."""

import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

MODEL = "claude-3-5-sonnet-20241022"
PROSE = "The quick brown fox jumps over the lazy dog, and the story goes on. "
CODE = 'def f(x: str) -> dict[str, list[int]]:\n    """Say it."""\n    return {"a": [len(x), 1], \'b\': []}\n\n'
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg"
TOOL_BYTES = 700


def tool(name: str) -> dict[str, Any]:
    """A function of the size that those of coding agents have."""
    properties = {
        "path": {"type": "string", "description": "The file, from the root of the repository."},
        "pattern": {"type": "string", "description": "What to look for; a regular expression."},
        "lines": {"type": "array", "items": {"type": "integer"}, "description": "The first and the last line."},
        "mode": {"type": "string", "enum": ["read", "write", "append"], "default": "read"},
        "limit": {"type": "integer", "description": "How many at most."},
    }
    schema = {"type": "object", "properties": properties, "required": ["path"], "additionalProperties": False}
    described = {"name": name, "description": PROSE * 2, "parameters": schema}
    return {"type": "function", "function": described}


def body(messages: list[Any], tools: int) -> bytes:
    """A whole body, as OpenAI's client writes it."""
    fields: dict[str, Any] = {"model": MODEL, "messages": messages, "max_tokens": 99, "temperature": 0.5}
    if tools:
        fields["tools"] = [tool(f"tool_{at}") for at in range(tools)]
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def one_text(size: int) -> bytes:
    """A single question."""
    return body([{"role": "user", "content": PROSE * (size // len(PROSE))}], 0)


def many_turns(size: int) -> bytes:
    """User and assistant in turn, a kilobyte each."""
    said = [
        {"role": ("user", "assistant")[at % 2], "content": PROSE * 15} for at in range(max(1, size // 1040) - 1 | 1)
    ]
    return body(said, 0)


def agent(size: int) -> bytes:
    """A coding agent: a dozen tools, then calls and the files that they bring."""
    tools = min(12, 1 + size // (8 * TOOL_BYTES))
    messages: list[Any] = [
        {"role": "system", "content": PROSE * (size // 20 // len(PROSE))},
        {"role": "user", "content": "Find the fault and mend it."},
    ]
    left, numbers = size - tools * TOOL_BYTES - size // 20, count()
    while left > 0:
        step = list(_step(next(numbers)))
        messages += step
        left -= len(json.dumps(step))
    return body(messages, tools)


def _step(at: int) -> Iterator[dict[str, Any]]:
    arguments = json.dumps({"path": f"src/module_{at}.py", "lines": [1, 80], "mode": "read"})
    function = {"name": "tool_0", "arguments": arguments}
    call = {"id": f"call_{at:08d}", "type": "function", "function": function}
    yield {"role": "assistant", "content": "Let me look at the next one.", "tool_calls": [call]}
    yield {"role": "tool", "tool_call_id": call["id"], "content": CODE * (5 + at % 12)}


def images(size: int) -> bytes:
    """Pictures with a question about each."""
    shown = max(1, size // 8192)
    data = PNG * (size // shown // len(PNG) // 4 * 4)
    messages: list[Any] = []
    for _ in range(shown):
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        messages.append({"role": "user", "content": [{"type": "text", "text": PROSE}, picture]})
        messages.append({"role": "assistant", "content": PROSE})
    return body([*messages, {"role": "user", "content": "And together?"}], 0)


CONVERSATIONS: dict[str, Callable[[int], bytes]] = {
    "one text": one_text,
    "many turns": many_turns,
    "agent": agent,
    "images": images,
}

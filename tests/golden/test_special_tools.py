"""MCP servers, tools that clients run by heart and answers of one word, for every pair of APIs that has them, as they
were when somebody last looked at them.

After a change that is meant, run `python tests/golden/test_special_tools.py` and review the difference.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # for when this file is run by itself

from kinference.shapes.lost import Untranslatable, header
from kinference.shapes.translate import DESTINATIONS, Way, emit, plan
from kinference.shapes.way_back import StreamTranslation, read_answer, write_answer
from kinference.vocabulary import Api
from tests.golden.test_translation import ANSWERS, FRAME, STREAMS, events

FOLDER = Path(__file__).parent / "special_tools"
SERVER = "https://mcp.example/sse"
CALL, RESULT = "call_9", "total 0"
LIST = {"commands": ["ls"]}
PATCH = {"type": "update_file", "path": "a.txt", "diff": "@@\n-a\n+b"}

REQUESTS: dict[str, tuple[Api, Any]] = {
    "mcp-responses": (
        Api.OPENAI_RESPONSES,
        {
            "model": "m",
            "tools": [
                {
                    "type": "mcp",
                    "server_label": "files",
                    "server_url": SERVER,
                    "authorization": "t0",
                    "allowed_tools": ["read"],
                    "require_approval": "never",
                },
                {"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": False},
            ],
            "input": [
                {"role": "user", "content": "Read a."},
                {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "files", "tools": []},
                {
                    "type": "mcp_call",
                    "id": "mcp_1",
                    "server_label": "files",
                    "name": "read",
                    "arguments": '{"path":"a"}',
                    "output": "A",
                },
                {"role": "assistant", "content": "It says A."},
                {"role": "user", "content": "And b?"},
            ],
        },
    ),
    "mcp-messages": (
        Api.ANTHROPIC_MESSAGES,
        {
            "model": "m",
            "max_tokens": 99,
            "mcp_servers": [{"type": "url", "name": "files", "url": SERVER, "authorization_token": "t0"}],
            "tools": [{"type": "mcp_toolset", "mcp_server_name": "files"}],
            "messages": [
                {"role": "user", "content": "Read a."},
                {
                    "role": "assistant",
                    "content": [
                        {
                            "type": "mcp_tool_use",
                            "id": "mcptoolu_1",
                            "name": "read",
                            "server_name": "files",
                            "input": {"path": "a"},
                        },
                        {
                            "type": "mcp_tool_result",
                            "tool_use_id": "mcptoolu_1",
                            "is_error": False,
                            "content": [{"type": "text", "text": "A"}],
                        },
                        {"type": "text", "text": "It says A."},
                    ],
                },
                {"role": "user", "content": "And b?"},
            ],
        },
    ),
    "shell-responses": (
        Api.OPENAI_RESPONSES,
        {
            "model": "m",
            "tools": [{"type": "shell", "environment": {"type": "local"}}, {"type": "apply_patch"}],
            "input": [
                {"role": "user", "content": "List, then patch."},
                {"type": "shell_call", "id": "sh_1", "call_id": CALL, "status": "completed", "action": LIST},
                {
                    "type": "shell_call_output",
                    "call_id": CALL,
                    "output": [{"stdout": RESULT, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
                },
                {"type": "apply_patch_call", "call_id": "call_10", "status": "completed", "operation": PATCH},
                {"type": "apply_patch_call_output", "call_id": "call_10", "status": "completed", "output": "Done."},
            ],
        },
    ),
    "shell-messages": (
        Api.ANTHROPIC_MESSAGES,
        {
            "model": "m",
            "max_tokens": 99,
            "tools": [
                {"type": "bash_20250124", "name": "bash"},
                {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
            ],
            "messages": [
                {"role": "user", "content": "List."},
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": CALL, "name": "bash", "input": {"command": "ls"}}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": CALL, "content": RESULT}]},
            ],
        },
    ),
    "enum-gemini": (
        Api.GEMINI,
        {
            "contents": [{"role": "user", "parts": [{"text": "Which way?"}]}],
            "generationConfig": {
                "responseMimeType": "text/x.enum",
                "responseSchema": {"type": "STRING", "enum": ["left", "right"]},
            },
        },
    ),
}
SWAPS: dict[str, tuple[tuple[str, str], ...]] = {
    "mcp-responses": (),
    "mcp-messages": (),
    "shell-responses": (
        ('"weather"', '"shell"'),
        ('"city": "Rome"', '"commands": ["ls"]'),
        (r"\"city\"", r"\"commands\""),
        (r"\"Rome\"", r"[\"ls\"]"),
    ),
    "shell-messages": (
        ('"weather"', '"bash"'),
        ('"city": "Rome"', '"command": "ls"'),
        (r"\"city\"", r"\"command\""),
        (r"\"Rome\"", r"\"ls\""),
    ),
    "enum-gemini": (
        ('"Sunny."', r'"{\"choice\":\"left\"}"'),
        ('"Sun"', r'"{\"choice\":"'),
        ('"ny."', r'"\"left\"}"'),
    ),
}
"""What the usual answers say instead."""


def swapped(case: str, value: Any) -> Any:
    text = json.dumps(value)
    for old, new in SWAPS[case]:
        text = text.replace(old, new)
    return json.loads(text)


def translated(case: str, destination: Api) -> dict[str, Any]:
    """The request as the destination gets it, where nobody has more of it, and the answers as the client gets them."""
    client, body = REQUESTS[case]
    raw = json.dumps(body).encode()
    planned = plan(raw, Way(client, destination, "theirs", yields=True))
    refused = ""
    try:
        plan(raw, Way(client, destination, "theirs"))
    except Untranslatable as error:
        refused = str(error)
    answer = read_answer(planned.back, json.dumps(swapped(case, ANSWERS[destination])).encode())
    stream = StreamTranslation(planned.back, FRAME)
    told = events(swapped(case, STREAMS[destination]))
    written = b"".join(map(stream.feed, told)) + stream.close()
    return {
        "refused while another is left": refused,
        "request": json.loads(emit(planned)),
        "warnings": header(planned.losses),
        "answer": json.loads(write_answer(planned.back, answer, FRAME)),
        "stream": written.decode().replace("\r\n", "\n").split("\n\n")[:-1],
    }


def golden(case: str, destination: Api) -> Path:
    return FOLDER / f"{case}-{destination.value}.json"


@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize("case", REQUESTS)
def test_a_special_tool_is_translated_as_it_was(case: str, destination: Api) -> None:
    assert translated(case, destination) == json.loads(golden(case, destination).read_text(encoding="utf-8"))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for one, there in ((case, destination) for case in REQUESTS for destination in DESTINATIONS):
        golden(one, there).write_text(json.dumps(translated(one, there), indent=1) + "\n", encoding="utf-8")

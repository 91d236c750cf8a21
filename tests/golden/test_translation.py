"""One rich conversation and its answers for every pair of APIs, as they were when somebody last looked at them.

After a change that is meant, run `python tests/golden/test_translation.py` and review the difference.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # for when this file is run by itself

from kinference.shapes.answers import Frame
from kinference.shapes.lost import header
from kinference.shapes.sse import Event
from kinference.shapes.translate import DESTINATIONS, Way, emit, plan
from kinference.shapes.way_back import StreamTranslation, read_answer, write_answer
from kinference.vocabulary import Api

FOLDER = Path(__file__).parent / "translation"
PNG = "iVBORw0KGgoAAAANSUhEUg=="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
FRAME = Frame("req_1", 1700000000)

REQUESTS: dict[Api, Any] = {
    Api.OPENAI_CHAT: {
        "model": "m",
        "max_tokens": 99,
        "temperature": 0.5,
        "stop": "END",
        "seed": 7,
        "tools": [{"type": "function", "function": {"name": "weather", "description": "d", "parameters": SCHEMA}}],
        "parallel_tool_calls": False,
        "reasoning_effort": "low",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Where is this?"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                ],
            },
            {
                "role": "assistant",
                "content": "Paris.",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city":"Paris"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "18 degrees"},
            {"role": "user", "content": "And?"},
        ],
    },
    Api.OPENAI_RESPONSES: {
        "model": "m",
        "max_output_tokens": 99,
        "instructions": "Be brief.",
        "reasoning": {"effort": "low", "summary": "auto"},
        "tools": [{"type": "function", "name": "weather", "description": "d", "parameters": SCHEMA, "strict": False}],
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Where is this?"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
                ],
            },
            {"role": "assistant", "content": [{"type": "output_text", "text": "Paris."}]},
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city":"Paris"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "18 degrees"},
            {"role": "user", "content": "And?"},
        ],
    },
    Api.OPENAI_COMPLETIONS: {"model": "m", "prompt": "Once upon a time", "stop": ["END"], "seed": 7},
    Api.ANTHROPIC_MESSAGES: {
        "model": "m",
        "max_tokens": 99,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "stop_sequences": ["END"],
        "top_k": 5,
        "tools": [{"name": "weather", "description": "d", "input_schema": SCHEMA}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Where is this?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Paris."},
                    {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Paris"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "18 degrees"},
                    {"type": "text", "text": "And?"},
                ],
            },
        ],
    },
    Api.GEMINI: {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {
            "maxOutputTokens": 99,
            "topK": 5,
            "stopSequences": ["END"],
            "thinkingConfig": {"thinkingBudget": 1024},
        },
        "tools": [{"functionDeclarations": [{"name": "weather", "description": "d", "parametersJsonSchema": SCHEMA}]}],
        "contents": [
            {
                "role": "user",
                "parts": [{"text": "Where is this?"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}],
            },
            {
                "role": "model",
                "parts": [{"text": "Paris."}, {"functionCall": {"name": "weather", "args": {"city": "Paris"}}}],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "weather", "response": {"output": "18 degrees"}}},
                    {"text": "And?"},
                ],
            },
        ],
    },
}

CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Rome"}'}}
CHAT_USAGE = {"prompt_tokens": 30, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 20}}
ANSWERS: dict[Api, Any] = {
    Api.OPENAI_CHAT: {
        "id": "chatcmpl-1",
        "model": "up",
        "choices": [
            {
                "message": {"content": "Sunny.", "reasoning_content": "Hm.", "tool_calls": [CHAT_CALL]},
                "finish_reason": "tool_calls",
            }
        ],
        "usage": CHAT_USAGE,
    },
    Api.OPENAI_RESPONSES: {
        "id": "resp_1",
        "model": "up",
        "status": "completed",
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "gAAA"},
            {"type": "message", "content": [{"type": "output_text", "text": "Sunny."}]},
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Rome"}'},
        ],
        "usage": {"input_tokens": 30, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 20}},
    },
    Api.ANTHROPIC_MESSAGES: {
        "id": "msg_1",
        "model": "up",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
            {"type": "text", "text": "Sunny."},
            {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 20, "output_tokens": 9},
    },
    Api.GEMINI: {
        "responseId": "r1",
        "modelVersion": "up",
        "candidates": [
            {
                "content": {
                    "parts": [
                        {"text": "Hm.", "thought": True},
                        {"text": "Sunny."},
                        {"functionCall": {"name": "weather", "args": {"city": "Rome"}}, "thoughtSignature": "c2ln"},
                    ]
                },
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 30,
            "candidatesTokenCount": 6,
            "thoughtsTokenCount": 3,
            "cachedContentTokenCount": 20,
        },
    },
    Api.BEDROCK_CONVERSE: {
        "output": {
            "message": {
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "Hm."}}},
                    {"text": "Sunny."},
                    {"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"city": "Rome"}}},
                ]
            }
        },
        "stopReason": "tool_use",
        "usage": {"inputTokens": 10, "cacheReadInputTokens": 20, "outputTokens": 9},
    },
}


def chunk(delta: Any, finish: str | None = None) -> Any:
    return {"id": "chatcmpl-1", "model": "up", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


STREAMS: dict[Api, list[Any]] = {
    Api.OPENAI_CHAT: [
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "Hm."}),
        chunk({"content": "Sun"}),
        chunk({"content": "ny."}),
        chunk({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "weather", "arguments": '{"city":'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"Rome"}'}}]}),
        chunk({}, "tool_calls"),
        {"choices": [], "usage": CHAT_USAGE},
        "[DONE]",
    ],
    Api.OPENAI_RESPONSES: [
        {"type": "response.created", "response": {"id": "resp_1", "model": "up"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "summary": []}},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Hm."},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
        },
        {"type": "response.output_text.delta", "output_index": 1, "delta": "Sunny."},
        {
            "type": "response.output_item.added",
            "output_index": 2,
            "item": {"type": "function_call", "call_id": "c1", "name": "weather"},
        },
        {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"city":"Rome"}'},
        {"type": "response.completed", "response": ANSWERS[Api.OPENAI_RESPONSES]},
    ],
    Api.ANTHROPIC_MESSAGES: [
        {
            "type": "message_start",
            "message": {"id": "msg_1", "model": "up", "usage": {"input_tokens": 10, "cache_read_input_tokens": 20}},
        },
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Sunny."}},
        {"type": "content_block_stop", "index": 1},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "c1", "name": "weather", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": '{"city":"Rome"}'},
        },
        {"type": "content_block_stop", "index": 2},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ],
    Api.GEMINI: [
        {
            "responseId": "r1",
            "modelVersion": "up",
            "candidates": [{"content": {"parts": [{"text": "Hm.", "thought": True}]}}],
        },
        {"responseId": "r1", "candidates": [{"content": {"parts": [{"text": "Sunny."}]}}]},
        {
            "responseId": "r1",
            "candidates": [
                {
                    "content": {
                        "parts": [
                            {"functionCall": {"name": "weather", "args": {"city": "Rome"}}, "thoughtSignature": "c2ln"}
                        ]
                    }
                }
            ],
        },
        {
            "responseId": "r1",
            "candidates": [{"finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 30, "candidatesTokenCount": 9},
        },
    ],
    Api.BEDROCK_CONVERSE: [
        {"type": "messageStart", "role": "assistant"},
        {"type": "contentBlockDelta", "contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "Hm."}}},
        {"type": "contentBlockStop", "contentBlockIndex": 0},
        {"type": "contentBlockDelta", "contentBlockIndex": 1, "delta": {"text": "Sunny."}},
        {
            "type": "contentBlockStart",
            "contentBlockIndex": 2,
            "start": {"toolUse": {"toolUseId": "c1", "name": "weather"}},
        },
        {"type": "contentBlockDelta", "contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"city":"Rome"}'}}},
        {"type": "messageStop", "stopReason": "tool_use"},
        {"type": "metadata", "usage": {"inputTokens": 10, "cacheReadInputTokens": 20, "outputTokens": 9}},
    ],
}


def translated(client: Api, destination: Api) -> dict[str, Any]:
    """The request as the destination gets it, what is told of it, and the answers as the client gets them."""
    planned = plan(json.dumps(REQUESTS[client]).encode(), Way(client, destination, "theirs"))
    answer = read_answer(planned.back, json.dumps(ANSWERS[destination]).encode())
    stream = StreamTranslation(planned.back, FRAME)
    written = b"".join(map(stream.feed, events(STREAMS[destination]))) + stream.close()
    return {
        "request": json.loads(emit(planned)),
        "warnings": header(planned.losses),
        "answer": json.loads(write_answer(planned.back, answer, FRAME)),
        "stream": written.decode().replace("\r\n", "\n").split("\n\n")[:-1],
    }


def events(stream: list[Any]) -> Iterator[Event]:
    for event in stream:
        text = event if isinstance(event, str) else json.dumps(event)
        yield Event("" if isinstance(event, str) else event.get("type", ""), text.encode(), b"")


def golden(client: Api, destination: Api) -> Path:
    return FOLDER / f"{client.value}-{destination.value}.json"


@pytest.mark.parametrize("destination", DESTINATIONS)
@pytest.mark.parametrize("client", REQUESTS)
def test_a_pair_of_apis_translates_as_it_did(client: Api, destination: Api) -> None:
    assert translated(client, destination) == json.loads(golden(client, destination).read_text(encoding="utf-8"))


if __name__ == "__main__":
    for pair in ((client, destination) for client in REQUESTS for destination in DESTINATIONS):
        golden(*pair).write_text(json.dumps(translated(*pair), indent=1) + "\n", encoding="utf-8")

"""How Anthropic, Google and Amazon answer, after recordings: whole and in events."""

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.integration.gateway.pairs.answers_openai import arguments, event, pieces
from tests.integration.gateway.pairs.meaning import Ending, Said
from tests.unit.shapes.bedrock_converse.frames import frame

_CLAUDE_ENDS: Mapping[Ending, str] = {
    "stop": "end_turn",
    "stop sequence": "stop_sequence",
    "length": "max_tokens",
    "tools": "tool_use",
    "refused": "refusal",
}


def _message_blocks(said: Said) -> list[Any]:
    blocks: list[Any] = []
    if said.thought:
        blocks.append({"type": "thinking", "thinking": said.thought, "signature": said.signature})
    if said.text:
        blocks.append({"type": "text", "text": said.text})
    blocks += ({"type": "tool_use", "id": one.id, "name": one.name, "input": one.arguments} for one in said.calls)
    return blocks


def message_whole(said: Said, model: str) -> Any:
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": _message_blocks(said),
        "stop_reason": _CLAUDE_ENDS[said.ending],
        "stop_sequence": said.stop_sequence or None,
        "usage": {**_message_usage(said), "output_tokens": said.tokens.completion},
    }


def _message_usage(said: Said) -> Any:
    return {
        "input_tokens": said.tokens.prompt - said.tokens.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": said.tokens.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 1,
        "service_tier": "standard",
    }


def message_events(said: Said, model: str) -> Iterator[bytes]:
    start = {
        **message_whole(said, model),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _message_usage(said),
    }
    told: list[Any] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for at, block in enumerate(_message_blocks(said)):
        begun, deltas = _message_deltas(block)
        told.append({"type": "content_block_start", "index": at, "content_block": begun})
        told += ({"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas)
        told.append({"type": "content_block_stop", "index": at})
    ended = {"stop_reason": _CLAUDE_ENDS[said.ending], "stop_sequence": said.stop_sequence or None}
    told.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": said.tokens.completion}})
    told.append({"type": "message_stop"})
    yield from (event(one, one["type"]) for one in told)


def _message_deltas(block: Any) -> tuple[Any, list[Any]]:
    if block["type"] == "thinking":
        deltas: list[Any] = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signed]
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    told = pieces(json.dumps(block["input"], ensure_ascii=False))
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *told)]


def message_error(status: int, message: str) -> Any:
    kinds = {429: "rate_limit_error", 400: "invalid_request_error", 529: "overloaded_error"}
    error = {"type": kinds.get(status, "api_error"), "message": message}
    return {"type": "error", "error": error, "request_id": "req_1"}


# --- gemini -----------------------------------------------------------------------------------------

_GEMINI_ENDS: Mapping[Ending, str] = {
    "stop": "STOP",
    "stop sequence": "STOP",
    "length": "MAX_TOKENS",
    "tools": "STOP",
    "refused": "SAFETY",
}


def _gemini_parts(said: Said) -> list[Any]:
    parts: list[Any] = []
    if said.thought:
        parts.append({"text": said.thought, "thought": True})
    if said.text:
        parts.append({"text": said.text})
    parts += ({"functionCall": {"name": call.name, "args": call.arguments}} for call in said.calls)
    if said.signature and said.calls:
        parts[-len(said.calls)]["thoughtSignature"] = base64.b64encode(said.signature.encode()).decode()
    return parts


def _gemini(said: Said, model: str, parts: list[Any], ending: str | None) -> Any:
    candidate: dict[str, Any] = {"index": 0}
    if parts:
        candidate["content"] = {"role": "model", "parts": parts}
    if ending:
        candidate["finishReason"] = ending
    if ending and said.logprobs:
        chosen = [{"token": token, "tokenId": 1, "logProbability": logprob} for token, logprob in said.logprobs]
        tops = [{"candidates": [one]} for one in chosen]
        candidate["logprobsResult"] = {"chosenCandidates": chosen, "topCandidates": tops}
    tokens = said.tokens
    usage = {
        "promptTokenCount": tokens.prompt,
        "candidatesTokenCount": tokens.completion - tokens.reasoning,
        "totalTokenCount": tokens.prompt + tokens.completion,
        "cachedContentTokenCount": tokens.cached,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens.prompt}],
    }
    if tokens.reasoning:
        usage["thoughtsTokenCount"] = tokens.reasoning
    candidates = [{**candidate, "index": at} for at in range(said.answers)]
    return {"candidates": candidates, "usageMetadata": usage, "modelVersion": model, "responseId": "g1"}


def gemini_whole(said: Said, model: str) -> Any:
    return _gemini(said, model, _gemini_parts(said), _GEMINI_ENDS[said.ending])


def gemini_events(said: Said, model: str) -> Iterator[bytes]:
    for part in _gemini_parts(said):
        texts = pieces(part["text"]) if "text" in part else [""]
        for text in texts:
            one = {**part, "text": text} if "text" in part else part
            yield event(_gemini(said, model, [one], None), end="\r\n\r\n")
    yield event(_gemini(said, model, [], _GEMINI_ENDS[said.ending]), end="\r\n\r\n")


def gemini_error(status: int, message: str, retry_after: str = "") -> Any:
    """Google says in the body when to come back, in the words that others have for a quota that is spent."""
    if retry_after:
        told = f"You exceeded your current quota, please check your plan and billing details. {message}"
        info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{retry_after}s"}
        return {"error": {"code": status, "message": told, "status": "RESOURCE_EXHAUSTED", "details": [info]}}
    names = {429: "RESOURCE_EXHAUSTED", 400: "INVALID_ARGUMENT", 503: "UNAVAILABLE"}
    return {"error": {"code": status, "message": message, "status": names.get(status, "INTERNAL")}}


# --- converse ---------------------------------------------------------------------------------------

_CONVERSE_ENDS: Mapping[Ending, str] = {**_CLAUDE_ENDS, "refused": "content_filtered"}


def _converse_usage(said: Said) -> Any:
    tokens = said.tokens
    return {
        "inputTokens": tokens.prompt - tokens.cached,
        "outputTokens": tokens.completion,
        "totalTokens": tokens.prompt + tokens.completion,
        "cacheReadInputTokens": tokens.cached,
        "cacheWriteInputTokens": 0,
    }


def converse_whole(said: Said, model: str) -> Any:
    content: list[Any] = []
    if said.thought:
        content.append({"reasoningContent": {"reasoningText": {"text": said.thought, "signature": said.signature}}})
    if said.text:
        content.append({"text": said.text})
    content += ({"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.arguments}} for call in said.calls)
    return {
        "metrics": {"latencyMs": 900},
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": _CONVERSE_ENDS[said.ending],
        "usage": _converse_usage(said),
    }


def converse_events(said: Said, model: str) -> Iterator[bytes]:
    yield frame("messageStart", {"p": "abcd", "role": "assistant"})
    at = 0
    for kind, texts in (("reasoning", [said.thought]), ("text", [said.text])):
        if not texts[0]:
            continue
        deltas: list[Any] = [{"text": piece} for piece in pieces(texts[0])]
        if kind == "reasoning":
            deltas = [{"reasoningContent": delta} for delta in (*deltas, {"signature": said.signature})]
        for delta in deltas:
            yield frame("contentBlockDelta", {"contentBlockIndex": at, "delta": delta, "p": "abc"})
        yield frame("contentBlockStop", {"contentBlockIndex": at, "p": "ab"})
        at += 1
    for call in said.calls:
        start = {"toolUse": {"toolUseId": call.id, "name": call.name}}
        yield frame("contentBlockStart", {"contentBlockIndex": at, "p": "a", "start": start})
        for piece in pieces(arguments(call)):
            yield frame("contentBlockDelta", {"contentBlockIndex": at, "delta": {"toolUse": {"input": piece}}})
        yield frame("contentBlockStop", {"contentBlockIndex": at})
        at += 1
    ended: dict[str, Any] = {"stopReason": _CONVERSE_ENDS[said.ending], "p": "abc"}
    yield frame("messageStop", ended)
    yield frame("metadata", {"metrics": {"latencyMs": 900}, "p": "a", "usage": _converse_usage(said)})


def converse_error(_status: int, message: str) -> Any:
    return {"message": message}

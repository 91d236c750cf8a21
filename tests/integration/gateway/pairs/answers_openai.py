"""How OpenAI's APIs answer, after recordings: Chat, Responses and Completions, whole and in events."""

import json
from collections.abc import Iterator
from typing import Any

from tests.integration.gateway.pairs.meaning import Call, Ending, Said, Tokens

CREATED = 1760000000
_CHAT_ENDS: dict[Ending, str] = {
    "stop": "stop",
    "stop sequence": "stop",
    "length": "length",
    "tools": "tool_calls",
    "refused": "content_filter",
}


def pieces(text: str) -> list[str]:
    """As tokens come: a few letters each."""
    return [text[at : at + 5] for at in range(0, len(text), 5)]


def arguments(call: Call) -> str:
    return json.dumps(call.arguments, ensure_ascii=False, separators=(",", ":"))


def chat_usage(tokens: Tokens) -> Any:
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.completion,
        "total_tokens": tokens.prompt + tokens.completion,
        "prompt_tokens_details": {"cached_tokens": tokens.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": tokens.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def chat_whole(said: Said, model: str) -> Any:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": said.text or None,
        "refusal": said.refusal or None,
        "annotations": [],
    }
    if said.thought:
        message["reasoning_content"] = said.thought
    if said.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments(call)}}
            for call in said.calls
        ]
    probable = {"content": logprobs_of(said), "refusal": None} if said.logprobs else None
    choice = {"index": 0, "message": message, "logprobs": probable, "finish_reason": _CHAT_ENDS[said.ending]}
    return {
        "id": "chatcmpl-C1",
        "object": "chat.completion",
        "created": CREATED,
        "model": model,
        "choices": [{**choice, "index": at} for at in range(said.answers)],
        "usage": chat_usage(said.tokens),
        "service_tier": "default",
        "system_fingerprint": "fp_1",
    }


def logprobs_of(said: Said) -> list[Any]:
    """Of each token, and of no other that it could have been."""
    told = [{"token": token, "logprob": logprob, "top_logprobs": []} for token, logprob in said.logprobs]
    return [{**one, "bytes": list(str(one["token"]).encode())} for one in told]


def _chunk(model: str, choices: list[Any], **members: Any) -> Any:
    return {
        "id": "chatcmpl-C1",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": model,
        "service_tier": "default",
        "system_fingerprint": "fp_1",
        "choices": choices,
        "obfuscation": "x0Yz",
        **members,
    }


def chat_events(said: Said, model: str, *, is_azure: bool = False) -> Iterator[bytes]:
    if is_azure:
        filtered = [{"prompt_index": 0, "content_filter_results": {}}]
        yield event(_chunk("", [], prompt_filter_results=filtered, id="", created=0))
    for delta in _deltas(said):
        yield event(_chunk(model, [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}], usage=None))
    ended = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": _CHAT_ENDS[said.ending]}
    yield event(_chunk(model, [ended], usage=None))
    yield event(_chunk(model, [], usage=chat_usage(said.tokens)))
    yield b"data: [DONE]\n\n"


def _deltas(said: Said) -> Iterator[Any]:
    yield {"role": "assistant", "content": "" if said.text else None, "refusal": None}
    yield from ({"reasoning_content": piece} for piece in pieces(said.thought))
    yield from ({"content": piece} for piece in pieces(said.text))
    yield from ({"refusal": piece} for piece in pieces(said.refusal))
    for at, call in enumerate(said.calls):
        yield {
            "tool_calls": [
                {"index": at, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
            ]
        }
        for piece in pieces(arguments(call)):
            yield {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}


def event(body: Any, name: str = "", end: str = "\n\n") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(body, ensure_ascii=False)}{end}".encode()


def error(status: int, message: str) -> Any:
    kind = {429: "rate_limit_error", 400: "invalid_request_error"}.get(status, "server_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


# --- completions ------------------------------------------------------------------------------------


def completion_whole(said: Said, model: str) -> Any:
    choice = {"text": said.text, "index": 0, "logprobs": None, "finish_reason": _CHAT_ENDS[said.ending]}
    return {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": CREATED,
        "model": model,
        "choices": [choice],
        "usage": chat_usage(said.tokens),
    }


def completion_events(said: Said, model: str) -> Iterator[bytes]:
    same = {"id": "cmpl-1", "object": "text_completion", "created": CREATED, "model": model}
    for piece in pieces(said.text):
        yield event({**same, "choices": [{"text": piece, "index": 0, "logprobs": None, "finish_reason": None}]})
    ended = {"text": "", "index": 0, "logprobs": None, "finish_reason": _CHAT_ENDS[said.ending]}
    yield event({**same, "choices": [ended]})
    yield event({**same, "choices": [], "usage": chat_usage(said.tokens)})
    yield b"data: [DONE]\n\n"


# --- responses --------------------------------------------------------------------------------------


def _items(said: Said) -> list[Any]:
    items: list[Any] = []
    if said.thought:
        summary = [{"type": "summary_text", "text": said.thought}]
        items.append({"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": said.signature})
    if said.text:
        content = {"type": "output_text", "text": said.text, "annotations": [], "logprobs": logprobs_of(said)}
        items.append(_message(content))
    if said.refusal:
        items.append(_message({"type": "refusal", "refusal": said.refusal}))
    items += (
        {
            "id": f"fc_{call.id}",
            "type": "function_call",
            "status": "completed",
            "call_id": call.id,
            "name": call.name,
            "arguments": arguments(call),
        }
        for call in said.calls
    )
    return items


def _message(part: Any) -> Any:
    return {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [part]}


def response_whole(said: Said, model: str) -> Any:
    reasons: dict[Ending, str] = {"length": "max_output_tokens", "refused": "content_filter"}
    reason = None if said.refusal else reasons.get(said.ending)
    return {
        **_begun(model),
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": _items(said),
        "usage": {
            "input_tokens": said.tokens.prompt,
            "input_tokens_details": {"cached_tokens": said.tokens.cached, "cache_write_tokens": 0},
            "output_tokens": said.tokens.completion,
            "output_tokens_details": {"reasoning_tokens": said.tokens.reasoning},
            "total_tokens": said.tokens.prompt + said.tokens.completion,
        },
    }


def _begun(model: str) -> Any:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": CREATED,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "service_tier": "default",
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
        "user": None,
        "metadata": {},
    }


def response_events(said: Said, model: str) -> Iterator[bytes]:
    whole = response_whole(said, model)
    kind = "response.incomplete" if whole["incomplete_details"] else "response.completed"
    told: list[Any] = [
        {"type": "response.created", "response": _begun(model)},
        {"type": "response.in_progress", "response": _begun(model)},
    ]
    for at, item in enumerate(whole["output"]):
        told += ({**one, "output_index": at} for one in _item_events(item))
    told.append({"type": kind, "response": whole})
    for number, one in enumerate(told):
        yield event({**one, "sequence_number": number}, one["type"])


def _item_events(item: Any) -> Iterator[Any]:
    if item["type"] == "reasoning":
        begun, within = {**item, "summary": []}, _summary_events(item)
    elif item["type"] == "function_call":
        begun, within = {**item, "arguments": "", "status": "in_progress"}, _call_events(item)
    else:
        begun, within = {**item, "content": [], "status": "in_progress"}, _part_events(item)
    yield {"type": "response.output_item.added", "item": begun}
    yield from within
    yield {"type": "response.output_item.done", "item": item}


def _summary_events(item: Any) -> Iterator[Any]:
    part, same = item["summary"][0], {"item_id": item["id"], "summary_index": 0}
    yield {"type": "response.reasoning_summary_part.added", **same, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": "response.reasoning_summary_text.delta", **same, "delta": piece, "obfuscation": "x"}
    yield {"type": "response.reasoning_summary_text.done", **same, "text": part["text"]}
    yield {"type": "response.reasoning_summary_part.done", **same, "part": part}


def _call_events(item: Any) -> Iterator[Any]:
    for piece in pieces(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", "item_id": item["id"], "delta": piece}
    done = {"arguments": item["arguments"], "name": item["name"]}
    yield {"type": "response.function_call_arguments.done", "item_id": item["id"], **done}


def _part_events(item: Any) -> Iterator[Any]:
    part, same = item["content"][0], {"item_id": item["id"], "content_index": 0}
    kind = "output_text" if part["type"] == "output_text" else "refusal"
    key = "text" if kind == "output_text" else "refusal"
    extra: dict[str, Any] = {"logprobs": []} if kind == "output_text" else {}
    yield {"type": "response.content_part.added", **same, "part": {**part, key: ""}}
    for piece in pieces(part[key]):
        yield {"type": f"response.{kind}.delta", **same, "delta": piece, **extra}
    yield {"type": f"response.{kind}.done", **same, key: part[key], **extra}
    yield {"type": "response.content_part.done", **same, "part": part}

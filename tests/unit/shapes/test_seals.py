import json
from typing import Any

import pytest

from kinference.shapes.ir import Reasoning, Sealed
from kinference.shapes.seals import NO_SIGNATURE, sealed, unsealed
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import (
    CHAT,
    CONVERSE,
    GEMINI,
    HI,
    MESSAGES,
    RESPONSES,
    Stream,
    answered,
    chunk,
    data,
    named,
    sent,
)

ISSUER = Api.ANTHROPIC_MESSAGES


@pytest.mark.parametrize("thought", [Reasoning("r", "s", ISSUER), Sealed("d", ISSUER)])
def test_a_seal_comes_back_as_its_issuer_gave_it(thought: Reasoning | Sealed) -> None:
    seal = sealed(thought)
    assert seal is not None
    assert unsealed(seal, "r") == thought


def test_what_nobody_signed_has_no_seal() -> None:
    assert sealed(Reasoning("r")) is None


@pytest.mark.parametrize("content", ["gAAAAAB", "kinference.", "kinference.é", "kinference.e30=", "kinference.W10="])
def test_a_seal_of_others_is_left_to_them(content: str) -> None:
    assert unsealed(content, "r") is None


SIGNED = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}
CALLS = {"candidates": [{"content": {"parts": [{"text": "a"}, SIGNED, {"functionCall": {"name": "g", "args": {}}}]}}]}


def sent_back(client: Api, said: Any, destination: Api = GEMINI, model: str = "m") -> Any:
    """What a destination gets when a client says again what it was told."""
    bodies: dict[Api, Any] = {
        CHAT: {"messages": [*HI, said, *HI]},
        MESSAGES: {"max_tokens": 9000, "messages": [*HI, {"role": "assistant", "content": said}, *HI]},
        RESPONSES: {"input": [*HI, *said, *HI] if client is RESPONSES else []},
        GEMINI: {"contents": [USER, {"role": "model", "parts": said}, USER]},
    }
    return sent({"model": "m", **bodies[client]}, client, destination, model)


USER = {"role": "user", "parts": [{"text": "hi"}]}


def said_in(client: Api, answer: Any) -> Any:
    """What a client keeps of an answer."""
    match client:
        case Api.OPENAI_CHAT:
            return answer["choices"][0]["message"]
        case Api.OPENAI_RESPONSES:
            return answer["output"]
        case Api.GEMINI:
            return answer["candidates"][0]["content"]["parts"]
    return answer["content"]


def kept_of(client: Api, stream: Stream) -> Any:
    """What a client keeps of a stream, put together as the clients' own libraries do it."""
    events = stream.events
    match client:
        case Api.OPENAI_CHAT:
            return _kept_of_chat([event["choices"][0]["delta"] for event in events[:-2] if event["choices"]])
        case Api.OPENAI_RESPONSES:
            return events[-1]["response"]["output"]
        case Api.GEMINI:
            return [part for event in events for part in event["candidates"][0]["content"]["parts"]]
    blocks: dict[int, Any] = {}
    for event in events:
        if event["type"] == "content_block_start":
            blocks[event["index"]] = event["content_block"]
        for field, value in event.get("delta", {}).items():
            if field in ("text", "thinking", "signature"):
                blocks[event["index"]][field] += value
    return list(blocks.values())


def _kept_of_chat(deltas: Any) -> Any:
    calls = [call for delta in deltas for call in delta.get("tool_calls", ()) if "id" in call]
    for call in calls:
        call["function"]["arguments"] = "{}"
    kept: Any = {"role": "assistant"}
    for field in ("content", "reasoning_content"):
        kept[field] = "".join(delta.get(field) or "" for delta in deltas)
    kept["thinking_blocks"] = [block for delta in deltas for block in delta.get("thinking_blocks", ())]
    return kept | {"tool_calls": calls}


def check(body: Any) -> None:
    parts = body["contents"][1]["parts"]
    assert parts[0] == {"text": "a"}
    first, second = parts[1:3]
    assert (first["functionCall"]["name"], first["thoughtSignature"]) == ("f", "c2ln")
    assert (second["functionCall"]["name"], "thoughtSignature" in second) == ("g", False)


@pytest.mark.parametrize("client", [CHAT, RESPONSES, MESSAGES])
def test_e10_geminis_signature_survives_a_client_of_another_api(client: Api) -> None:
    check(sent_back(client, said_in(client, answered(CALLS, client, GEMINI))))
    stream = Stream(client, GEMINI).feed(data(CALLS, {"candidates": [{"finishReason": "STOP"}]})).end()
    check(sent_back(client, kept_of(client, stream)))


CLAUDES = {
    "content": [
        {"type": "thinking", "thinking": "I think.", "signature": "sig"},
        {"type": "redacted_thinking", "data": "hidden"},
        {"type": "text", "text": "a"},
    ],
    "stop_reason": "end_turn",
}
CLAUDES_STREAM = [
    {"type": "message_start", "message": {"id": "m1", "model": "c"}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "I "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "think."}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "hidden"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "a"}},
    {"type": "content_block_stop", "index": 2},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]


@pytest.mark.parametrize("client", [RESPONSES, GEMINI])
def test_e10_claudes_thoughts_survive_a_client_of_another_api(client: Api) -> None:
    whole = said_in(client, answered(CLAUDES, client, MESSAGES))
    streamed = kept_of(client, Stream(client, MESSAGES).feed(named(*CLAUDES_STREAM)).end())
    for said in (whole, streamed):
        assert sent_back(client, said, MESSAGES)["messages"][1]["content"] == CLAUDES["content"]
    assert sent_back(client, whole, CHAT)["messages"][1] == {"role": "assistant", "content": "a"}


def test_e10_claudes_thoughts_survive_a_chat_client() -> None:
    said = said_in(CHAT, answered(CLAUDES, CHAT, MESSAGES))
    assert sent_back(CHAT, said, MESSAGES)["messages"][1]["content"] == CLAUDES["content"]


OPENAIS = {
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [{"text": "I think."}], "encrypted_content": "gAAA"},
        {"type": "message", "content": [{"type": "output_text", "text": "a"}]},
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gBBB"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    ]
}


@pytest.mark.parametrize("client", [CHAT, MESSAGES, GEMINI])
def test_e10_openais_thoughts_survive_a_client_of_another_api(client: Api) -> None:
    items = (
        {"type": "response.output_item.done", "output_index": n, "item": i} for n, i in enumerate(OPENAIS["output"])
    )
    stream = Stream(client, RESPONSES).feed(named(*items, {"type": "response.completed", "response": {}})).end()
    for said in (said_in(client, answered(OPENAIS, client, RESPONSES)), kept_of(client, stream)):
        body = sent_back(client, said, RESPONSES)
        thoughts = [item for item in body["input"] if item["type"] == "reasoning"]
        assert [thought["encrypted_content"] for thought in thoughts] == ["gAAA", "gBBB"]
        assert [item["type"] for item in body["input"]].index("reasoning") == 1
        assert "gAAA" not in json.dumps(sent_back(client, said, MESSAGES if client is not MESSAGES else CHAT))


@pytest.mark.parametrize("destination", [MESSAGES, CONVERSE, RESPONSES])
def test_e10_geminis_signature_goes_to_nobody_else(destination: Api) -> None:
    said = answered(CALLS, CHAT, GEMINI)["choices"][0]["message"]
    body = {"model": "m", "messages": [*HI, said, *HI]}
    text = json.dumps(sent(body, CHAT, destination, "claude-sonnet-4-5"))
    assert "c2ln" not in text
    assert said["thinking_blocks"][0]["data"] not in text
    assert "thinking" not in text.replace("thinking_blocks", "")


SIGNED_CALL = {
    "id": "c1",
    "function": {"name": "f", "arguments": "{}"},
    "extra_content": {"google": {"thought_signature": "c2ln"}},
}


@pytest.mark.parametrize("client", [MESSAGES, RESPONSES])
def test_e10_geminis_signature_survives_where_gemini_speaks_chat(client: Api) -> None:
    message = {"role": "assistant", "tool_calls": [SIGNED_CALL]}
    whole = said_in(client, answered({"choices": [{"message": message}]}, client, CHAT))
    streamed = kept_of(client, Stream(client, CHAT).feed(data(chunk(message), chunk({}, "tool_calls"), "[DONE]")).end())
    for said in (whole, streamed):
        (call,) = sent_back(client, said, CHAT, "google/gemini-3-pro")["messages"][1]["tool_calls"]
        assert call["extra_content"] == SIGNED_CALL["extra_content"]
        assert sent_back(client, said)["contents"][1]["parts"][0]["thoughtSignature"] == "c2ln"
        (plain,) = sent_back(client, said, CHAT)["messages"][1]["tool_calls"]
        assert "extra_content" not in plain


def test_e11_a_lost_signature_has_the_placeholder_where_gemini_speaks_chat() -> None:
    said: Any = [{"type": "tool_use", "id": name, "name": name, "input": {}} for name in ("f", "g")]
    first, second = sent_back(MESSAGES, said, CHAT, "gemini-3-pro")["messages"][1]["tool_calls"]
    assert first["extra_content"] == {"google": {"thought_signature": NO_SIGNATURE}}
    assert "extra_content" not in second

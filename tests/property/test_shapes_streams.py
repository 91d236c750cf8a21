"""What holds for every stream that is translated, however its bytes are cut and its calls interleaved."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinference.shapes.answers import Frame
from kinference.shapes.sse import SseReader
from kinference.shapes.translate import CLIENTS, DESTINATIONS, Way, emit, plan, reader_of
from kinference.shapes.way_back import StreamTranslation
from kinference.vocabulary import Api
from tests.fuzz.shapes import BACKS, BODIES
from tests.golden.test_translation import STREAMS
from tests.unit.shapes.bedrock_converse.frames import frame

CONVERSING = [client for client in CLIENTS if client is not Api.OPENAI_EMBEDDINGS]
CALLING = [Api.OPENAI_CHAT, Api.OPENAI_RESPONSES, Api.ANTHROPIC_MESSAGES, Api.GEMINI]
FOREIGN = [destination for destination in DESTINATIONS if destination is not Api.ANTHROPIC_MESSAGES]
SIGNATURE = "only-its-issuer-reads-this"
words = st.text(st.characters(codec="utf-8"), max_size=8)
arguments = st.dictionaries(words, words | st.integers() | st.lists(words, max_size=2), max_size=3).map(json.dumps)


def streamed(destination: Api, line_end: str) -> bytes:
    """The golden stream of an API as bytes, with some text beyond ASCII."""
    stream = [json.loads(json.dumps(event).replace("Sun", "S\u00fcn\U0001f31e")) for event in STREAMS[destination]]
    if destination is Api.BEDROCK_CONVERSE:
        return b"".join(frame(event["type"], event) for event in stream)
    texts = (event if isinstance(event, str) else json.dumps(event, ensure_ascii=False) for event in stream)
    return "".join(f"data: {text}{line_end}{line_end}" for text in texts).encode()


def written(client: Api, destination: Api, pieces: Sequence[bytes]) -> bytes:
    back = BACKS[client, destination]
    reader, translation = reader_of(back), StreamTranslation(back, Frame("r", 1))
    events = [event for piece in pieces for event in reader.feed(piece)]
    tail = reader.tail()
    return b"".join(map(translation.feed, (*events, *((tail,) if tail else ())))) + translation.close()


@pytest.mark.parametrize("destination", DESTINATIONS)
@given(client=st.sampled_from(CONVERSING), line_end=st.sampled_from(["\n", "\r\n", "\r"]), data=st.data())
def test_a_stream_is_the_same_however_it_is_cut_and_its_lines_end(
    destination: Api, client: Api, line_end: str, data: st.DataObject
) -> None:
    raw = streamed(destination, line_end)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=20)))
    pieces = [raw[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    found = written(client, destination, pieces)
    assert found == written(client, destination, [streamed(destination, "\n")])
    assert "S\u00fcn\U0001f31e".encode() in found


@st.composite
def interleaved(draw: st.DrawFn) -> tuple[list[str], list[tuple[int, str]]]:
    """Arguments of some calls, and their fragments in any order that keeps each call's own."""
    calls = draw(st.lists(arguments, min_size=1, max_size=4))
    fragments = {}
    for call, text in enumerate(calls):
        cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
        fragments[call] = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    order = draw(st.permutations([call for call, texts in fragments.items() for _ in texts]))
    return calls, [(call, fragments[call].pop(0)) for call in order]


def called(client: Api, raw: bytes) -> list[tuple[str, Any]]:
    """The calls that a client reads out of its stream."""
    calls: dict[Any, list[str]] = {}
    for event in SseReader().feed(raw):
        body = {} if event.data in (b"", b"[DONE]") else json.loads(event.data)
        if client is Api.OPENAI_CHAT:
            for choice in body.get("choices", ()):
                for call in choice["delta"].get("tool_calls", ()):
                    calls.setdefault(call["index"], []).append(call["function"].get("name") or "")
                    calls[call["index"]].append(call["function"].get("arguments") or "")
        elif client is Api.OPENAI_RESPONSES and body.get("type") == "response.completed":
            items = (item for item in body["response"]["output"] if item["type"] == "function_call")
            calls = {item["call_id"]: [item["name"], item["arguments"]] for item in items}
        elif client is Api.ANTHROPIC_MESSAGES and body.get("type") == "content_block_start":
            calls[body["index"]] = [body["content_block"].get("name", "")]
        elif client is Api.ANTHROPIC_MESSAGES and body.get("type") == "content_block_delta":
            calls[body["index"]].append(body["delta"].get("partial_json", ""))
        elif client is Api.GEMINI:
            for part in body["candidates"][0]["content"]["parts"]:
                if "functionCall" in part:
                    found = part["functionCall"]
                    calls[len(calls)] = [found["name"], json.dumps(found["args"])]
    whole = ["".join(texts) for texts in calls.values()]
    return [(text[:2], json.loads(text[2:] or "{}")) for text in whole]


@pytest.mark.parametrize("client", CALLING)
@given(talk=interleaved(), gap=st.integers(0, 3), repeats=st.booleans())
def test_calls_come_whole_however_their_fragments_are_interleaved(
    client: Api, talk: tuple[list[str], list[tuple[int, str]]], gap: int, repeats: bool
) -> None:
    """Indexes may have gaps, and ids may be repeated with every fragment."""
    calls, fragments = talk
    seen: dict[int, None] = {}
    chunks = []
    for call, text in fragments:
        function: dict[str, Any] = {"arguments": text} | ({} if call in seen else {"name": f"f{call}"})
        named = {"id": f"call_{call}"} if repeats or call not in seen else {}
        seen[call] = None
        tool = {"index": call * (gap + 1) + gap, **named, "function": function}
        chunks.append({"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [tool]}}]})
    chunks.append({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    raw = b"".join(b"data: %b\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"
    expected = [(f"f{call}", json.loads(calls[call])) for call in seen]
    assert called(client, written(client, Api.OPENAI_CHAT, [raw])) == expected


@pytest.mark.parametrize("destination", FOREIGN)
@given(thought=words, client=st.sampled_from([Api.OPENAI_CHAT, Api.ANTHROPIC_MESSAGES]), sealed=st.booleans())
def test_a_signature_goes_back_to_its_issuer_and_to_nobody_else(
    destination: Api, thought: str, client: Api, sealed: bool
) -> None:
    block = (
        {"type": "redacted_thinking", "data": SIGNATURE}
        if sealed
        else {"type": "thinking", "thinking": thought, "signature": SIGNATURE}
    )
    body = json.loads(BODIES[client])
    said: dict[str, Any] = {"role": "assistant", "content": "hm"}
    if client is Api.OPENAI_CHAT:
        said["thinking_blocks"] = [block]
    else:
        said["content"] = [block, {"type": "text", "text": "hm"}]
    body["messages"] = [{"role": "user", "content": "a"}, said, {"role": "user", "content": "b"}]
    raw = json.dumps(body).encode()
    assert SIGNATURE.encode() not in emit(plan(raw, Way(client, destination, "m")))
    assert SIGNATURE.encode() in emit(plan(raw, Way(client, Api.ANTHROPIC_MESSAGES, "m")))

"""A stream that is relayed is read by whole chunks where that can be done: what is learned is the same as by looking at
each event for itself, whatever comes and wherever it is cut.
"""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinference.gateway.itl import InterTokenGaps
from kinference.gateway.passage import EventPassage
from kinference.shapes.sse import SseReader
from kinference.shapes.watch import Kind, StreamWatcher
from kinference.vocabulary import Api

APIS = (Api.OPENAI_CHAT, Api.OPENAI_COMPLETIONS, Api.OPENAI_RESPONSES, Api.ANTHROPIC_MESSAGES, Api.GEMINI)
EVENT_ENDS = (b"\n\n", b"\n\r\n", b"\r\r")


def chat(delta: object, finish: str | None = None, **more: object) -> bytes:
    return written("", {"id": "1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} | more)


def written(name: str, value: object, *, spaced: bool = False) -> bytes:
    text = json.dumps(value, separators=(", ", ": ") if spaced else (",", ":"), ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def typed(value: dict[str, Any], *, spaced: bool = False) -> bytes:
    return written(value["type"], value, spaced=spaced)


DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3}}
HI = chat({"content": "hi"})
CHATS = (
    HI,
    HI * 3,
    chat({"role": "assistant", "content": ""}),
    chat({"reasoning_content": "hm"}),
    chat({"reasoning_content": "hm"}) * 2,
    chat({"content": "", "reasoning_content": "hm"}),
    chat({"content": "hi"}, None, usage=USAGE),
    chat({"content": "hi"}, None, usage=None, error=None),
    chat({"tool_calls": [{"index": 0, "function": {"arguments": '{"error":{'}}]}),
    chat({"content": 'usage":{"error":{"finish_reason":"stop"'}),
    chat({}, "stop"),
    chat({"content": "last"}, "length"),
    written("", {"choices": [], "usage": USAGE}),
    written("", {"choices": [], "usage": USAGE}, spaced=True),
    written("", {"usage": {"prompt_tokens": 9}, "choices": [{"delta": {"content": "x"}}]}, spaced=True),
    written("", {"error": {"message": "boom"}}),
    written("", {"object": "error", "message": "boom"}, spaced=True),
    written("", {"choices": [{"text": "hi"}]}),
    written("message", {"choices": [{"text": "hi"}]}),
    HI.replace(b'"content"', b'"cont\\u0065nt"'),
    DONE,
)
NAMED = (
    typed({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}}),
    typed({"type": "content_block_delta", "index": 0, "delta": {"text": "event: error\ndata: {}\n\n"}}) * 2,
    written("", {"type": "content_block_delta", "delta": {"text": "hi"}}, spaced=True),
    typed({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 5, "output_tokens": 1}}}),
    typed({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}, spaced=True),
    typed({"type": "message_stop"}),
    typed({"type": "ping"}),
    typed({"type": "error", "error": {"type": "overloaded_error"}}),
    typed({"type": "response.created", "sequence_number": 0}),
    typed({"type": "response.output_text.delta", "sequence_number": 1, "delta": "hi"}) * 2,
    typed({"type": "response.completed", "response": {"usage": {"input_tokens": 5, "output_tokens": 1}}}),
    typed({"type": "response.failed", "response": {"usage": None}}),
    b"event: content_block_delta\n\n",
    b"event: content_block_delta\ndata: \n\n",
    b"event: content_block_delta\ndata: a\nevent: message_stop\n\n",
    b"event: content_block_delta\nevent: message_stop\ndata: a\n\n",
    b"event: message_stop\ndata: a\ndata: b\n\n",
    b"event: x\nid: 1\ndata: b\n\n",
)
ODD = (
    b": keep-alive\n\n",
    b"\n",
    b"\n\n\n",
    b"\r",
    b"\r\n",
    b"\xef\xbb\xbf",
    b"data:x\n\n",
    b"data: \n\n",
    b"data: a\ndata: b\n\n",
    b'data: {"content":"',
    b'"},"finish_reason":null}]}\n\n',
    HI[:30],
    HI[30:],
    HI.replace(b"hi", b""),
    HI.replace(b"hi", b"\\"),
    HI.replace(b"hi", b'"x'),
    HI.replace(b"hi", b'x","usage":{"prompt_tokens":1},"y":"'),
    HI.replace(b'hi"', b'hi":{"usage":"x"'),
    HI.replace(b'hi"', b'finish_reason":"x"'),
    HI.replace(b"hi", b"\xc3"),
    written("", {"candidates": [{"content": {"parts": [{"text": "hi"}]}}], "usageMetadata": {"promptTokenCount": 4}}),
    written("", {"candidates": [{"finishReason": "STOP"}]}),
)
TEXTS = st.text(st.sampled_from('ab" \\\n\r{}:,é😀'), max_size=6)
PLAIN = st.sampled_from((*CHATS, *NAMED, *ODD)) | TEXTS.map(lambda text: chat({"content": text}))
ENDED = st.tuples(PLAIN, st.sampled_from((b"\r\n", b"\r"))).map(lambda drawn: drawn[0].replace(b"\n", drawn[1]))
PART = st.one_of(PLAIN, PLAIN, PLAIN, ENDED)


@st.composite
def streams(draw: st.DrawFn) -> list[bytes]:
    """A stream as it was read: nearly always by whole events, and cut anywhere."""
    parts = draw(st.lists(PART, max_size=12))
    edges = list(itertools.accumulate(map(len, parts), initial=0))
    kept = draw(st.lists(st.sampled_from(edges), max_size=8))
    cuts = sorted({*kept, *draw(st.lists(st.integers(0, edges[-1]), max_size=3)), 0, edges[-1]})
    whole = b"".join(parts)
    return [whole[begin:end] for begin, end in itertools.pairwise(cuts)]


class EventByEvent:
    """What a passage learns, by looking at each event for itself."""

    def __init__(self, api: Api) -> None:
        self.reader, self.watcher = SseReader(), StreamWatcher(api)
        self.told = 0
        self.token_times: list[float] = []
        self.shown = b""

    def feed(self, chunk: bytes, now: float) -> None:
        for event in self.reader.feed(chunk):
            kind = self.watcher.watch(event)
            self.told += bool(event.data)
            if kind is Kind.CONTENT:
                self.token_times.append(now)
            if kind is not Kind.USAGE:
                self.shown += event.raw

    def gaps(self) -> tuple[int, ...]:
        gaps = InterTokenGaps()
        for before, after in itertools.pairwise(self.token_times):
            gaps.add((after - before) * 1000)
        return gaps.counts()


@pytest.mark.parametrize("api", APIS)
@given(chunks=streams(), hides=st.booleans(), pace=st.sampled_from([0.0, 0.012, 2.0]))
def test_what_is_learned_by_the_chunk_is_what_each_event_tells(
    api: Api, chunks: list[bytes], hides: bool, pace: float
) -> None:
    passage, expected, out = EventPassage(api, hide_usage=hides), EventByEvent(api), b""
    for number, chunk in enumerate(chunks):
        now = number * pace
        out += passage.feed(chunk, now)
        expected.feed(chunk, now)
        watcher = expected.watcher
        assert out == (expected.shown if hides else b"".join(chunks[: number + 1]))
        assert passage.estimated_tokens() == watcher.content_events == len(expected.token_times)
        assert (passage.usage(), passage.has_failed()) == (watcher.usage, watcher.is_failed)
        assert passage.is_whole(cut=True) == (watcher.is_complete or watcher.is_failed)
        assert passage.gaps() == expected.gaps()


@pytest.mark.parametrize("api", APIS)
@given(chunks=streams())
def test_a_stream_that_breaks_off_ends_behind_an_event_with_one_of_the_right_number(
    api: Api, chunks: list[bytes]
) -> None:
    passage, expected, out = EventPassage(api, hide_usage=False), EventByEvent(api), b""
    for chunk in chunks:
        out += passage.feed(chunk, 0.0)
        expected.feed(chunk, 0.0)
    farewell = passage.farewell()
    assert farewell is not None
    is_between = (b"\n\n" + out).endswith(EVENT_ENDS)  # a stream begins as if after an event
    assert farewell.startswith(b"\n\n") != is_between
    if api is Api.OPENAI_RESPONSES:
        assert json.loads(farewell.partition(b"data: ")[2])["sequence_number"] == expected.told

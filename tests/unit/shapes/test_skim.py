import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinference.shapes.skim import (
    MESSAGES_DELTAS,
    NOTHING,
    RESPONSES_DELTAS,
    NamedSkimmer,
    Skimmed,
    Skimmer,
    Skimming,
    skim,
    skim_named,
)
from kinference.shapes.sse import SseReader
from kinference.shapes.watch import Kind, StreamWatcher
from kinference.vocabulary import Api


def event(delta: object, **fields: object) -> bytes:
    chunk = {"id": "1", "choices": [{"index": 0, "delta": delta, "finish_reason": None} | fields]}
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"


HI, EMPTY, CALL = event({"content": "hi"}), event({"content": ""}), event({"tool_calls": [{"function": {"name": "f"}}]})
STOP = event({}, finish_reason="stop")
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n'
ERROR = b'data: {"error":{"message":"boom"}}\n\n'
DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("chunk", "events", "contents"),
    [
        (HI, 1, 1),
        (HI * 3, 3, 3),
        (EMPTY + HI + EMPTY, 3, 1),
        (event({"role": "assistant"}) + CALL, 2, 1),
        (event({"reasoning_content": "hm"}), 1, 1),
        (HI.replace(b'"content":"', b'"content": "'), 1, 1),
        (HI.replace(b"}]}", b'}],"usage":null}'), 1, 1),
        (event({"content": 'data: [DON\\"'}), 1, 1),
    ],
)
def test_ordinary_events_are_counted(chunk: bytes, events: int, contents: int) -> None:
    assert skim(chunk) == (len(chunk), events, contents)


@pytest.mark.parametrize("rest", [STOP, USAGE, ERROR, DONE, b"data: \n\n", HI[:20], b"data: x\n"])
def test_what_tells_more_is_left_to_be_read(rest: bytes) -> None:
    assert skim(HI + EMPTY + rest) == (len(HI + EMPTY), 2, 1)
    assert skim(rest) == NOTHING


@pytest.mark.parametrize(
    "chunk",
    [
        b"",
        b"\n\n",
        b"\n" + HI,
        HI.replace(b"\n", b"\r\n"),
        HI + b"\n" + HI,
        b"event: x\n" + HI,
        HI + b": comment\n\n",
        b"data: a\ndata: b\n\n",
        b"data:x\n\n",
        b"\xef\xbb\xbf" + HI,
    ],
)
def test_events_of_another_form_are_not_skimmed(chunk: bytes) -> None:
    assert skim(chunk) == NOTHING


PARTS = (
    HI,
    EMPTY,
    CALL,
    STOP,
    USAGE,
    ERROR,
    DONE,
    b": ping\n\n",
    b"data: \n\n",
    b"\n",
    b"data: a\ndata: b\n\n",
    HI[:30],
    HI.replace(b"hi", b"more"),
    event({"content": 'a "quoted" word\\'}),
)


def check_by_reading(chunk: bytes, skimmed: Skimmed) -> None:
    size, events, contents = skimmed
    watcher = StreamWatcher(Api.OPENAI_CHAT)
    kinds = [watcher.watch(one) for one in SseReader().feed(chunk[:size])]
    assert (len(kinds), kinds.count(Kind.CONTENT)) == (events, contents)
    assert set(kinds) <= {Kind.CONTENT, Kind.OTHER}
    assert not watcher.is_complete
    assert not watcher.is_failed
    assert watcher.usage is None


CHUNKS = st.lists(st.sampled_from(PARTS), max_size=8).map(b"".join)


@given(CHUNKS)
def test_skimming_counts_what_reading_does(chunk: bytes) -> None:
    check_by_reading(chunk, skim(chunk))


@given(st.lists(CHUNKS, max_size=5))
def test_what_was_skimmed_before_spoils_nothing(chunks: list[bytes]) -> None:
    skimmer = Skimmer()
    for chunk in chunks:
        skimmed = skimmer.skim(chunk)
        check_by_reading(chunk, skimmed)
        assert skimmed[0] >= skim(chunk)[0]


TEXTS = (
    b"hi",
    b"",
    b"\n\n",
    b"\r",
    b'a\\"b',
    b"\\",
    b"longer text",
    b"\xc3",
    b'x","usage":{"',
    b'x","finish_reason":"stop"',
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("around", [HI, HI + HI, HI[:-1], b"", STOP])
def test_an_event_is_like_one_before_only_where_nothing_but_its_text_differs(text: bytes, around: bytes) -> None:
    chunk = HI.replace(b"hi", text)
    skimmer = Skimmer()
    for once in (HI, event({"content": 'a "quoted" word'}), HI):
        skimmer.skim(once)
    for whole in (chunk, chunk + around, HI + chunk, HI + chunk + HI + around):
        assert skimmer.skim(whole)[0] >= skim(whole)[0]
        check_by_reading(whole, skimmer.skim(whole))


def test_an_event_whose_text_is_a_mark_is_one_like_the_others() -> None:
    skimmer, chunk = Skimmer(), event({"content": "error"})
    skimmer.skim(HI)
    assert skimmer.skim(chunk * 2) == (2 * len(chunk), 2, 2)
    check_by_reading(chunk, (len(chunk), 1, 1))


@pytest.mark.parametrize("delta", [{"reasoning_content": "hm"}, {"tool_calls": [{"function": {"arguments": '{"a'}}]}])
def test_events_are_alike_whatever_the_model_wrote(delta: object) -> None:
    skimmer, chunk = Skimmer(), event(delta)
    skimmer.skim(chunk)
    odd = chunk.replace(b"hm", b"error").replace(b'{\\"a', b'\\"usage\\":{')
    assert skimmer.skim(odd * 3) == (3 * len(odd), 3, 3)
    assert chunk != odd


def test_an_event_whose_text_is_a_key_teaches_nothing() -> None:
    skimmer = Skimmer()
    skimmer.skim(HI.replace(b'"hi"', b'"hi":"x"'))
    ended = HI.replace(b'"hi"', b'"finish_reason":"x"')
    assert skimmer.skim(ended) == NOTHING


DELTA = b'event: content_block_delta\ndata: {"delta":{"text":"hi"}}\n\n'
STEP = b'event: response.output_text.delta\ndata: {"delta":"hi"}\n\n'


@pytest.mark.parametrize(("deltas", "chunk"), [(MESSAGES_DELTAS, DELTA), (RESPONSES_DELTAS, STEP)])
def test_named_events_are_counted_up_to_one_of_another_name_or_form(deltas: re.Pattern[bytes], chunk: bytes) -> None:
    rests = (
        b"",
        b"event: message_stop\ndata: {}\n\n",
        b": ping\n\n",
        chunk[:-1],
        chunk[: chunk.index(b"{")] + b"\n\n",
        b"\n" + chunk,
        chunk.replace(b"\n\n", b"\nevent: error\n\n"),
    )
    for rest in rests:
        assert skim_named(deltas, chunk * 3 + rest) == (3 * len(chunk), 3, 3)
        assert skim_named(deltas, rest + chunk)[2] == (rest == b"")
    assert skim_named(deltas, chunk + chunk.replace(b"hi", b"h\r")) == NOTHING


@pytest.mark.parametrize("text", TEXTS)
def test_one_more_is_what_skimming_finds_alone(text: bytes) -> None:
    skimmer, chunk = Skimmer(), HI.replace(b"hi", text)
    assert not skimmer.is_one_more(HI)  # than none
    skimmer.skim(HI)
    assert skimmer.is_one_more(HI)
    assert not skimmer.is_one_more(HI + HI)
    assert not skimmer.is_one_more(HI[:-1])
    found = skimmer.is_one_more(chunk)
    assert not found or skimmer.skim(chunk) == (len(chunk), 1, 1)
    check_by_reading(chunk, (len(chunk), 1, 1) if found else NOTHING)


@pytest.mark.parametrize(("deltas", "one"), [(MESSAGES_DELTAS, DELTA), (RESPONSES_DELTAS, STEP)])
def test_one_more_of_those_that_have_a_name_is_one(deltas: re.Pattern[bytes], one: bytes) -> None:
    skimmer = NamedSkimmer(deltas)
    assert skimmer.is_one_more(one)
    assert skimmer.skim(one + one) == (2 * len(one), 2, 2)
    for other in (
        one + one,
        one[:-1],
        one + b"\n",
        one.replace(b"\n", b"\r\n"),
        one.replace(b"delta\n", b"start\n"),
        b"",
    ):
        assert not skimmer.is_one_more(other)


def test_what_cannot_be_skimmed_is_never_one_more() -> None:
    assert not Skimming().is_one_more(HI)
    assert Skimming().skim(HI) == NOTHING

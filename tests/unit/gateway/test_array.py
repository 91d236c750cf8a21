import json
from itertools import pairwise

import pytest

from kinference.errors import UpstreamCut
from kinference.gateway.array import ArrayPassage, array_of, wants_array
from kinference.gateway.passage import EventPassage
from kinference.shapes.sse import EVENT_BYTES_MAX
from kinference.vocabulary import Api

STREAM = "/v1beta/models/m:streamGenerateContent"
TEXT = {"candidates": [{"content": {"parts": [{"text": "a,\r]"}]}}]}
LAST = {"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2}}


def events(*bodies: object) -> bytes:
    return b"".join(b"data: " + json.dumps(body).encode() + b"\r\n\r\n" for body in bodies)


def a_passage() -> ArrayPassage:
    return ArrayPassage(EventPassage(Api.GEMINI, hide_usage=False))


@pytest.mark.parametrize(
    ("path", "query", "is_wanted"),
    [
        (STREAM, "", True),
        (STREAM, "key=k", True),
        (STREAM, "alt=json", True),
        (STREAM, "alt=sse", False),
        (STREAM, "key=k&%24alt=sse", False),
        (STREAM.replace("streamGenerate", "generate"), "", False),
        ("/v1/chat/completions", "", False),
    ],
)
def test_an_array_is_for_who_asks_gemini_for_a_stream_and_for_no_events(path: str, query: str, is_wanted: bool) -> None:
    assert wants_array(path, query) is is_wanted


def test_the_events_are_the_elements_however_they_were_cut() -> None:
    stream = events(TEXT, TEXT, LAST)
    for size in (1, 7, len(stream)):
        passage = a_passage()
        cuts = [*range(0, len(stream), size), len(stream)]
        written = b"".join(passage.feed(stream[start:end], 1.0) for start, end in pairwise(cuts))
        assert json.loads(written + passage.close()) == [TEXT, TEXT, LAST]
        assert passage.is_whole(cut=False)
        assert not passage.has_failed()
        usage = passage.usage()
        assert usage is not None
        assert (usage.prompt_tokens, usage.completion_tokens) == (3, 2)
    assert passage.estimated_tokens() == 2
    assert sum(passage.gaps()) == 1
    assert passage.keep_alive() == b""


def test_each_element_goes_out_when_its_event_has_come() -> None:
    passage = a_passage()
    assert json.loads(passage.feed(events(TEXT), 1.0) + b"]") == [TEXT]
    assert json.loads(b"[0" + passage.feed(events(LAST), 2.0) + b"]") == [0, LAST]


def test_an_event_without_its_blank_line_is_the_last_element() -> None:
    passage = a_passage()
    written = passage.feed(events(TEXT, LAST).rstrip(), 1.0)
    assert json.loads(written + passage.close()) == [TEXT, LAST]


def test_a10_a_stream_that_breaks_off_ends_its_array_with_an_error() -> None:
    passage = a_passage()
    written = passage.feed(events(TEXT) + b'data: {"candi', 1.0) + passage.close()
    assert not passage.is_whole(cut=True)
    text, error = json.loads(written + (passage.farewell() or b""))
    assert text == TEXT
    assert error["error"]["status"] == "UNAVAILABLE"


def test_a_whole_stream_becomes_a_whole_array() -> None:
    assert json.loads(array_of(events(TEXT, LAST))) == [TEXT, LAST]
    assert array_of(b"") == b"[]"


def test_an_event_without_end_is_no_answer() -> None:
    with pytest.raises(UpstreamCut):
        a_passage().feed(b"data: " + b"x" * EVENT_BYTES_MAX, 1.0)

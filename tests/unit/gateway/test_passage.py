import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinference.errors import UpstreamCut
from kinference.gateway.passage import UNARY_KEPT_MAX, EventPassage, PlainPassage
from kinference.shapes.sse import EVENT_BYTES_MAX
from kinference.shapes.usage import Usage
from kinference.vocabulary import Api

HELLO = 'data: {"choices":[{"index":0,"delta":{"content":"hé😀"}}]}\n\n'.encode()
FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}\n\n'
AZURE = b'data: {"choices":[],"prompt_filter_results":[{"prompt_index":0}]}\n\n'
DONE = b"data: [DONE]\n\n"
COMMENT = b": PROCESSING\n\n"
STREAM = COMMENT + AZURE + HELLO + HELLO + FINISH + USAGE + DONE


def chat(*, hide_usage: bool = False) -> EventPassage:
    return EventPassage(Api.OPENAI_CHAT, hide_usage=hide_usage)


def cut_at(data: bytes, points: list[int]) -> list[bytes]:
    edges = [0, *sorted(point % (len(data) + 1) for point in points), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


@given(st.lists(st.integers(min_value=0), max_size=20))
def test_a1_bytes_go_out_as_they_came_at_once_however_they_were_cut(points: list[int]) -> None:
    passage = chat()
    for chunk in cut_at(STREAM, points):
        assert passage.feed(chunk, 0.0) == chunk
    assert passage.close() == b""
    assert passage.is_whole(cut=False)
    assert passage.usage() == Usage(7, 2)


@given(st.lists(st.integers(min_value=0), max_size=20))
def test_g13_a_hidden_usage_chunk_is_all_that_is_missing_however_it_was_cut(points: list[int]) -> None:
    passage = chat(hide_usage=True)
    out = b"".join([passage.feed(chunk, 0.0) for chunk in cut_at(STREAM, points)]) + passage.close()
    assert out == STREAM.replace(USAGE, b"")
    assert passage.usage() == Usage(7, 2)


def test_a_last_event_without_its_blank_line_is_not_lost_where_whole_events_go_out() -> None:
    passage = chat(hide_usage=True)
    out = passage.feed(HELLO + b"data: [DONE]", 0.0)
    assert (out, passage.close()) == (HELLO, b"data: [DONE]")
    assert passage.is_whole(cut=False)


@pytest.mark.parametrize("ending", [DONE, FINISH])
@pytest.mark.parametrize("cut", [True, False])
def test_a11_either_sign_of_the_end_is_enough(ending: bytes, *, cut: bool) -> None:
    passage = chat()
    passage.feed(HELLO + ending, 0.0)
    assert passage.is_whole(cut=cut)


def test_a10_a_chat_stream_that_breaks_off_ends_in_an_error_and_without_done() -> None:
    passage = chat()
    passage.feed(HELLO, 0.0)
    assert not passage.is_whole(cut=False)
    farewell = passage.farewell()
    assert farewell is not None
    assert farewell.startswith(b"data: {")
    assert json.loads(farewell[6:])["error"]["code"] == "upstream_closed"


def test_a10_an_anthropic_stream_that_breaks_off_ends_in_an_error_event() -> None:
    farewell = EventPassage(Api.ANTHROPIC_MESSAGES, hide_usage=False).farewell()
    assert farewell is not None
    assert farewell.startswith(b"event: error\ndata: ")
    assert json.loads(farewell.partition(b"data: ")[2])["error"]["type"] == "api_error"


def test_a10_a_responses_stream_that_breaks_off_ends_in_the_next_numbered_failure() -> None:
    passage = EventPassage(Api.OPENAI_RESPONSES, hide_usage=False)
    begun = (
        b'{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","tools":[]}}'
    )
    passage.feed(b"event: response.created\ndata: %b\n\n" % begun, 0.0)
    farewell = passage.farewell()
    assert farewell is not None
    failed = json.loads(farewell.partition(b"data: ")[2])
    assert (failed["type"], failed["sequence_number"]) == ("response.failed", 1)
    assert failed["response"]["error"]["code"] == "server_error"  # one of those that its official client takes
    assert (failed["response"]["id"], failed["response"]["tools"]) == ("resp_1", [])
    assert failed["response"]["status"] == "failed"


@pytest.mark.parametrize("begun", [b"", b"data: [1]\n\n", b'event: response.created\ndata: {"response":1}\n\n'])
def test_a10_a_responses_stream_that_began_in_no_known_way_ends_in_a_failure_too(begun: bytes) -> None:
    passage = EventPassage(Api.OPENAI_RESPONSES, hide_usage=False)
    passage.feed(begun, 0.0)
    assert b'"status":"failed"' in (passage.farewell() or b"")


def test_a_farewell_in_the_middle_of_an_event_ends_that_event_first() -> None:
    passage = chat()
    passage.feed(HELLO[:-7], 0.0)
    farewell = passage.farewell()
    assert farewell is not None
    assert farewell.startswith(b"\n\ndata: ")


@pytest.mark.parametrize("sent", [b"", HELLO, COMMENT, b"data: a\r\n\r\n", b"data: a\r\r"])
def test_a19_a_silent_stream_is_kept_alive_between_events(sent: bytes) -> None:
    passage = chat()
    passage.feed(sent, 0.0)
    assert passage.keep_alive() == b": keep-alive\n\n"


@pytest.mark.parametrize("sent", [b"d", HELLO[:-1], HELLO + b"da", b"data: a\r\n"])
def test_a19_nothing_is_said_in_the_middle_of_an_event(sent: bytes) -> None:
    passage = chat()
    passage.feed(sent, 0.0)
    assert passage.keep_alive() == b""


def test_a19_anthropic_clients_are_pinged() -> None:
    assert EventPassage(Api.ANTHROPIC_MESSAGES, hide_usage=False).keep_alive() == (
        b'event: ping\ndata: {"type":"ping"}\n\n'
    )


def test_gaps_are_measured_between_events_with_content() -> None:
    passage = chat()
    for now, event in [(0.0, AZURE), (1.0, HELLO), (1.004, HELLO), (1.1, HELLO), (9.0, FINISH), (9.5, USAGE)]:
        passage.feed(event, now)
    assert passage.gaps() == (1, *[0] * 7, 1, *[0] * 6)


def test_a_stream_of_one_token_has_no_gaps() -> None:
    passage = chat()
    passage.feed(HELLO, 0.0)
    assert passage.gaps() == ()


def test_g6_tokens_are_estimated_from_events_where_no_usage_came() -> None:
    passage = chat()
    passage.feed(AZURE + HELLO * 3 + DONE, 0.0)
    assert (passage.usage(), passage.estimated_tokens()) == (None, 3)


def test_an_error_inside_the_stream_is_an_end_that_needs_no_other() -> None:
    passage = chat()
    passage.feed(b'data: {"error":{"message":"boom"}}\n\n', 0.0)
    assert passage.has_failed()
    assert passage.is_whole(cut=False)


def test_an_endless_event_is_taken_for_a_broken_answer() -> None:
    passage = chat()
    with pytest.raises(UpstreamCut):
        passage.feed(b"data: " + bytes(EVENT_BYTES_MAX), 0.0)


def test_a_whole_answer_goes_through_untouched_and_tells_its_usage() -> None:
    passage = PlainPassage(Api.OPENAI_CHAT)
    parts = (b'{"usage":{"prompt_tokens":7,', b'"completion_tokens":2}}')
    assert [passage.feed(part, 0.0) for part in parts] == [*parts]
    assert (passage.close(), passage.keep_alive(), passage.farewell(), passage.gaps()) == (b"", b"", None, ())
    assert passage.usage() == Usage(7, 2)
    assert passage.is_whole(cut=False)
    assert not passage.is_whole(cut=True)
    assert not passage.has_failed()


def test_an_answer_too_long_to_keep_is_relayed_and_estimated() -> None:
    passage = PlainPassage(Api.OPENAI_CHAT)
    passage.feed(bytes(UNARY_KEPT_MAX), 0.0)
    passage.feed(b"x" * 8, 0.0)
    assert passage.usage() is None
    assert passage.estimated_tokens() == UNARY_KEPT_MAX // 4 + 2


def test_embeddings_complete_no_tokens() -> None:
    passage = PlainPassage(Api.OPENAI_EMBEDDINGS)
    passage.feed(b"x" * 8, 0.0)
    assert passage.estimated_tokens() == 0


WORD = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":null}]}\n\n'
TOLD = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":7}}\n\n'
WHOLE = WORD * 5 + b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n' + TOLD + b"data: [DONE]\n\n"


@pytest.mark.parametrize("hide_usage", [False, True])
@pytest.mark.parametrize("size", [1, 7, len(WORD), 3 * len(WORD) + 4, len(WHOLE)])
def test_events_are_accounted_for_alike_however_many_come_at_once(size: int, *, hide_usage: bool) -> None:
    passage = EventPassage(Api.OPENAI_CHAT, hide_usage=hide_usage)
    sent = b"".join(passage.feed(WHOLE[start : start + size], 1.0) for start in range(0, len(WHOLE), size))
    assert sent + passage.close() == (WHOLE.replace(TOLD, b"") if hide_usage else WHOLE)
    usage = passage.usage()
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, passage.estimated_tokens()) == (3, 7, 5)
    assert passage.gaps()[0] == 4
    assert passage.is_whole(cut=True)


@pytest.mark.parametrize("blank", [b"\n", b"\r"])
def test_a_read_of_blank_lines_inside_a_stream_is_taken_as_one(blank: bytes) -> None:
    passage = chat()
    for chunk in (HELLO[:20], HELLO[20:] + blank * 5, blank * 100_000, HELLO * 2 + HELLO[:9], HELLO[9:]):
        assert passage.feed(chunk, 0.0) == chunk
    assert passage.estimated_tokens() == 4

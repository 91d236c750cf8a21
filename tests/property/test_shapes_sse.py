"""However the bytes of an event stream are cut, the events are the same and no byte is lost."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kinference.shapes.sse import Event, SseReader, emit

LINE = st.sampled_from(
    [b"data: a", b"data:b", b"data", b": note", b"event: x", b"id: 1", b"", b"", b"\xef\xbb\xbf", "é\u2028🙂".encode()]
)
END = st.sampled_from([b"\n", b"\r\n", b"\r"])
STREAM = st.lists(st.tuples(LINE, END)).map(lambda lines: b"".join(line + end for line, end in lines))
CUTS = st.lists(st.integers(0, 200))


def read(chunks: list[bytes]) -> tuple[list[Event], bytes]:
    reader = SseReader()
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    tail = reader.tail()
    return events, tail.raw if tail else b""


def cut(stream: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(at, len(stream)) for at in cuts), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


@given(STREAM, CUTS)
def test_a22_any_cutting_gives_the_same_events_and_loses_no_byte(stream: bytes, cuts: list[int]) -> None:
    whole, _ = read([stream])
    pieces, tail = read(cut(stream, cuts))
    assert [(event.event, event.data) for event in pieces] == [(event.event, event.data) for event in whole]
    assert b"".join(event.raw for event in pieces) + tail == stream


@given(STREAM)
def test_a22_bytes_one_by_one_give_the_same_events(stream: bytes) -> None:
    whole, _ = read([stream])
    pieces, _ = read([stream[at : at + 1] for at in range(len(stream))])
    assert [(event.event, event.data) for event in pieces] == [(event.event, event.data) for event in whole]


@given(st.lists(st.tuples(st.sampled_from(["", "x", "message_stop"]), st.binary())), CUTS)
def test_what_is_written_is_read_back(written: list[tuple[str, bytes]], cuts: list[int]) -> None:
    stream = b"".join(emit(name, data) for name, data in written)
    events, tail = read(cut(stream, cuts))
    assert tail == b""
    assert [(event.event, event.data) for event in events] == [
        (name, data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")) for name, data in written
    ]

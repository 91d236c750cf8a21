"""The reader and the writer of server-sent events."""

from pathlib import Path

import pytest

from kinference.shapes.sse import Event, EventTooLong, SseReader, comment, emit

SAMPLES = Path(__file__).parent / "samples"


def told(events: list[Event]) -> list[tuple[str, bytes]]:
    return [(event.event, event.data) for event in events]


def read(*chunks: bytes) -> list[tuple[str, bytes]]:
    reader = SseReader()
    return told([event for chunk in chunks for event in reader.feed(chunk)])


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_is_known(end: bytes) -> None:
    stream = b"event: x" + end + b"data: a" + end + end + b"data: b" + end + end
    assert read(stream) == [("x", b"a"), ("", b"b")]


@pytest.mark.parametrize(
    ("block", "event"),
    [
        (b"data:a\n\n", ("", b"a")),
        (b"data:  a\n\n", ("", b" a")),
        (b"data: a\ndata: b\ndata:\n\n", ("", b"a\nb\n")),
        (b"data\n\n", ("", b"")),
        (b": hello\n\n", ("", b"")),
        (b": hello\ndata: a\n\n", ("", b"a")),
        (b"id: 1\nretry: 5\nwhat: ever\ndata: a\n\n", ("", b"a")),
        (b"event: x\nevent: y\ndata: a:b\n\n", ("y", b"a:b")),
        (b"\xef\xbb\xbfdata: a\n\n", ("", b"a")),
        (b"\n\ndata: a\n\n", ("", b"a")),
        ("data: a\u2028b\u2029c\x85\x0b\x0c\n\n".encode(), ("", "a\u2028b\u2029c\x85\x0b\x0c".encode())),
        (b"data: \xff\nevent: \xff\n\n", ("\ufffd", b"\xff")),
    ],
)
def test_a4_a_block_becomes_one_event(block: bytes, event: tuple[str, bytes]) -> None:
    assert read(block) == [event]
    assert read(*(block[i : i + 1] for i in range(len(block)))) == [event]


def test_a_second_byte_order_mark_is_no_mark() -> None:
    assert read(b"data: a\n\n\xef\xbb\xbfdata: b\n\n") == [("", b"a"), ("", b"")]


def test_an_event_never_waits_for_the_lf_of_its_last_crlf() -> None:
    reader = SseReader()
    assert told(reader.feed(b"data: a\r\n\r")) == [("", b"a")]
    assert reader.feed(b"\n") == []
    assert told(reader.feed(b"\r\ndata: b\r\n\r\n")) == [("", b"b")]
    assert reader.tail() is None


def test_a_crlf_stream_cut_between_cr_and_lf_merges_nothing_and_adds_nothing() -> None:
    stream = b"data: a\r\n\r\ndata: b\r\n\r\ndata: [DONE]\r\n\r\n"
    whole = read(stream)
    assert whole == [("", b"a"), ("", b"b"), ("", b"[DONE]")]
    for at in range(len(stream)):
        assert read(stream[:at], stream[at:]) == whole


def test_a_character_cut_in_two_stays_whole() -> None:
    stream = 'data: {"content":"hé🙂"}\n\n'.encode()
    for at in range(len(stream)):
        assert read(stream[:at], stream[at:]) == [("", '{"content":"hé🙂"}'.encode())]


def test_blank_lines_alone_make_no_event() -> None:
    assert read(b"\n\n\n\n", b"\r\n\r", b"\n\n\n") == []


@pytest.mark.parametrize("name", ["vllm_chat.sse", "vllm_messages.sse"])
def test_what_a_relay_forwards_is_what_came(name: str) -> None:
    stream = (SAMPLES / name).read_bytes()
    reader = SseReader()
    events = [event for at in range(0, len(stream), 7) for event in reader.feed(stream[at : at + 7])]
    assert b"".join(event.raw for event in events) == stream
    assert told(events) == read(stream)


def test_the_tail_is_what_had_no_blank_line() -> None:
    reader = SseReader()
    reader.feed(b"data: a\n\ndata: [DONE]\n")
    assert reader.tail() == Event("", b"[DONE]", b"data: [DONE]\n")
    assert SseReader().tail() is None


def test_an_unfinished_event_is_bounded() -> None:
    reader = SseReader(event_bytes_max=10)
    reader.feed(b"data: 12\n\n")
    reader.feed(b"data: 1234")
    with pytest.raises(EventTooLong, match="over 10 bytes"):
        reader.feed(b"5")


def test_a_finished_event_is_bounded() -> None:
    with pytest.raises(EventTooLong):
        SseReader(event_bytes_max=10).feed(b"data: 123\n\n")


def test_countless_blank_lines_cost_no_more_than_their_bytes() -> None:
    assert read(b"\n" * 200_000, b"\r\n" * 100_000 + b"data: a\n\n") == [("", b"a")]


def test_nothing_fed_is_nothing_found() -> None:
    reader = SseReader()
    reader.feed(b"data: a\n\r")
    assert reader.feed(b"") == []
    assert told(reader.feed(b"\ndata: b\n\n")) == [("", b"b")]


@pytest.mark.parametrize(
    ("event", "data", "written"),
    [
        ("", b"a", b"data: a\n\n"),
        ("x", b"a", b"event: x\ndata: a\n\n"),
        ("", b"a\nb\r\nc", b"data: a\ndata: b\ndata: c\n\n"),
        ("", b"", b"data: \n\n"),
    ],
)
def test_the_writer_writes_what_the_reader_reads(event: str, data: bytes, written: bytes) -> None:
    assert emit(event, data) == written


def test_a_comment_is_one_line_and_no_event() -> None:
    assert comment("a\r\nb") == b": a b\n\n"
    assert told(SseReader().feed(comment("a"))) == [("", b"")]


def test_a_mark_of_the_byte_order_begins_nothing_behind_events_that_were_read_elsewhere() -> None:
    reader = SseReader()
    reader.pass_over()
    assert [event.data for event in reader.feed(b"\xef\xbb\xbfdata: a\n\n")] == [b""]

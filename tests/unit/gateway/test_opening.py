import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator

import pytest

from kinference.errors import UpstreamCut
from kinference.gateway.opening import Opening, error_in
from kinference.gateway.verdict import ErrorAnswer
from kinference.ports import Headers
from kinference.shapes.sse import Event
from kinference.vocabulary import Api
from tests.unit.gateway.fakes import EVENTS, JSON, FakeAnswer
from tests.unit.shapes.bedrock_converse.frames import frame

CHAT = Api.OPENAI_CHAT
FIRST = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
PLAIN = b'{"choices":[]}' * 9


async def rest_of(opening: Opening) -> bytes:
    return b"".join([chunk async for chunk in opening.chunks()])


class SlowAnswer(FakeAnswer):
    """Says nothing until it is told to."""

    def __init__(self) -> None:
        super().__init__(200, EVENTS, (FIRST, b"data: [DONE]\n\n"))
        self.goes_on = asyncio.Event()

    async def chunks(self) -> AsyncIterator[bytes]:
        await self.goes_on.wait()
        async for chunk in super().chunks():
            yield chunk


async def test_what_was_read_ahead_is_not_lost() -> None:
    opening = Opening(FakeAnswer(200, EVENTS, (b": hi\n\n", FIRST[:9], FIRST[9:], FIRST)), is_read=False)
    event = await opening.first_event(CHAT, 1.0)
    assert event is not None
    assert event.data == FIRST[6:-2]
    assert await rest_of(opening) == b": hi\n\n" + FIRST + FIRST
    assert (opening.status, opening.headers) == (200, EVENTS)


async def test_a19_a_silent_stream_is_not_waited_for_any_longer_than_its_client_can_be_kept_waiting() -> None:
    answer = SlowAnswer()
    opening = Opening(answer, is_read=False)
    assert await opening.first_event(CHAT, 0.001) is None
    answer.goes_on.set()
    assert await rest_of(opening) == FIRST + b"data: [DONE]\n\n"


class Chatter(FakeAnswer):
    """A stream that says for ever that it is alive, and nothing else."""

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.005)
            yield b": processing\n\n"


async def test_a_stream_of_comments_alone_keeps_its_client_waiting_no_longer_than_a_silent_one() -> None:
    opening = Opening(Chatter(200, EVENTS), is_read=False)
    assert await asyncio.wait_for(opening.first_event(CHAT, 0.02), 60) is None
    assert await anext(opening.chunks()) == b": processing\n\n"
    await opening.close()


async def test_an_answer_of_nothing_is_none() -> None:
    with pytest.raises(UpstreamCut, match="answered with nothing"):
        await Opening(FakeAnswer(200, JSON, ()), is_read=False).begin()


@pytest.mark.parametrize("body", [b"<!DOCTYPE html><html>", b"  <html>", b"OK", b'"text"', b"data: {}\n\n", b": hi\n"])
@pytest.mark.parametrize("kind", [b"text/html", b"application/json"])
async def test_an_answer_that_is_no_json_is_none(body: bytes, kind: bytes) -> None:
    with pytest.raises(UpstreamCut, match="not JSON"):
        await Opening(FakeAnswer(200, ((b"content-type", kind),), (body,)), is_read=False).begin()


@pytest.mark.parametrize("body", [b"{}", b" \r\n\t[1]", b"\xef\xbb\xbf{}", b" \n", b"\n" * 9 + b"{"])
async def test_an_answer_that_could_be_json_goes_through_as_it_is(body: bytes) -> None:
    opening = Opening(FakeAnswer(200, JSON, (body, b"{}")), is_read=False)
    await opening.begin()
    assert await rest_of(opening) == body + b"{}"


async def test_an_answer_in_a_coding_that_its_client_undoes_is_not_looked_into() -> None:
    head = (*JSON, (b"content-encoding", b"br"))
    opening = Opening(FakeAnswer(200, head, (b"\x8b\x00",)), is_read=False)
    await opening.begin()
    assert await rest_of(opening) == b"\x8b\x00"


async def test_closing_ends_the_wait() -> None:
    answer = SlowAnswer()
    opening = Opening(answer, is_read=False)
    await opening.first_event(CHAT, 0.001)
    await opening.close()
    assert answer.is_closed


class StubbornAnswer(SlowAnswer):
    """Takes its time to end what it was told to."""

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            await asyncio.Event().wait()
        finally:
            await self.goes_on.wait()
        yield b""


async def test_whoever_closes_it_can_be_cancelled_meanwhile() -> None:
    answer = StubbornAnswer()
    opening = Opening(answer, is_read=False)
    await opening.first_event(CHAT, 0.001)
    closing = asyncio.ensure_future(opening.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert answer.is_closed
    answer.goes_on.set()


async def test_a_beginning_without_an_event_is_let_through_at_some_length() -> None:
    endless = b"data: x" + b"x" * 100_000
    opening = Opening(FakeAnswer(200, EVENTS, (endless, *[b"x" * 100_000] * 9)), is_read=False)
    assert await opening.first_event(CHAT, 1.0) is None
    assert len(await rest_of(opening)) == 1_000_007


async def test_a_stream_without_an_event_is_no_answer() -> None:
    for chunks in ((), (b": hi\n\n",)):
        with pytest.raises(UpstreamCut):
            await Opening(FakeAnswer(200, EVENTS, chunks), is_read=False).first_event(CHAT, 1.0)


async def test_an_event_that_lacks_its_blank_line_is_one() -> None:
    event = await Opening(FakeAnswer(200, EVENTS, (FIRST[:-1],)), is_read=False).first_event(CHAT, 1.0)
    assert event is not None
    assert event.data == FIRST[6:-2]


async def test_bytes_that_are_no_stream_are_no_answer() -> None:
    with pytest.raises(UpstreamCut):
        await Opening(FakeAnswer(200, EVENTS, (b"\x00" * 99,)), is_read=True).first_event(Api.BEDROCK_CONVERSE, 1.0)


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_i7_what_is_compressed_and_does_not_say_so_comes_out_plain(size: int) -> None:
    packed = gzip.compress(PLAIN)
    chunks = [packed[at : at + size] for at in range(0, len(packed), size)]
    fields = (*JSON, (b"content-length", b"30"))
    for is_read in (True, False):
        opening = Opening(FakeAnswer(200, fields, chunks), is_read=is_read)
        await opening.begin()
        assert await rest_of(opening) == PLAIN
        if size > 1:
            assert opening.headers == list(JSON)


@pytest.mark.parametrize(
    ("coding", "packed"), [(b"gzip", gzip.compress(PLAIN)), (b"Deflate", zlib.compress(PLAIN))], ids=["gzip", "deflate"]
)
async def test_i6_what_is_compressed_is_undone_where_it_is_read_and_left_alone_elsewhere(
    coding: bytes, packed: bytes
) -> None:
    fields: Headers = (*JSON, (b"content-encoding", coding))
    read = Opening(FakeAnswer(200, fields, (packed,)), is_read=True)
    assert (await rest_of(read), read.headers) == (PLAIN, list(JSON))
    passed = Opening(FakeAnswer(200, fields, (packed,)), is_read=False)
    assert (await rest_of(passed), passed.headers) == (packed, fields)


async def test_a_coding_that_cannot_be_undone_is_no_answer() -> None:
    with pytest.raises(UpstreamCut):
        Opening(FakeAnswer(200, (*JSON, (b"content-encoding", b"zstd"))), is_read=True)
    with pytest.raises(UpstreamCut):
        await rest_of(Opening(FakeAnswer(200, JSON, (b"\x1f\x8b broken",)), is_read=True))


async def test_a_small_answer_that_grows_huge_comes_in_pieces() -> None:
    packed = gzip.compress(bytes(9_000_000))
    pieces = [len(piece) async for piece in Opening(FakeAnswer(200, JSON, (packed,)), is_read=True).chunks()]
    assert sum(pieces) == 9_000_000
    assert max(pieces) <= 1024 * 1024


@pytest.mark.parametrize(
    ("api", "event", "status"),
    [
        (CHAT, Event("", b'{"error":{"message":"m","code":429}}', b'"error"'), 429),
        (
            Api.ANTHROPIC_MESSAGES,
            Event("error", b'{"type":"error","error":{"type":"overloaded_error","message":"m"}}', b"error"),
            529,
        ),
        (Api.GEMINI, Event("", b'{"error":{"code":503,"message":"m"}}', b'"error"'), 503),
    ],
)
def test_an_error_within_a_stream_is_the_answer_that_it_should_have_been(api: Api, event: Event, status: int) -> None:
    assert error_in(event, api) == ErrorAnswer(status, JSON, event.data)


def test_an_error_that_is_no_body_of_its_own_is_put_into_one() -> None:
    response = Event("error", b'{"type":"error","code":"server_error","message":"m","sequence_number":0}', b"error")
    error = error_in(response, Api.OPENAI_RESPONSES)
    assert error is not None
    assert (error.status, error.body) == (
        500,
        b'{"error":{"message":"m","type":"server_error","param":null,"code":null}}',
    )
    raw = frame("throttlingException", {"message": "slow down"}, "exception")
    error = error_in(Event("throttlingException", b'{"message":"slow down"}', raw), Api.BEDROCK_CONVERSE)
    assert error is not None
    assert error.status == 429


@pytest.mark.parametrize(
    ("parts", "usage", "is_nothing"),
    [
        (None, {"promptTokenCount": 5}, True),
        ([], {"promptTokenCount": 5, "candidatesTokenCount": 0}, True),
        ([{"text": "a"}], {"promptTokenCount": 5}, False),
        (None, {"promptTokenCount": 5, "thoughtsTokenCount": 9}, False),
        ([{"functionCall": {"name": "f"}}], {}, False),
    ],
)
def test_c6_a_stream_of_geminis_that_ends_as_it_begins_and_said_nothing_is_no_answer(
    parts: object, usage: object, *, is_nothing: bool
) -> None:
    content = {"role": "model"} | ({} if parts is None else {"parts": parts})
    body = {"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage}
    data = json.dumps(body).encode()
    error = error_in(Event("", data, b"data: " + data), Api.GEMINI)
    assert (error is not None and error.status == 502) is is_nothing
    cut = data.replace(b"STOP", b"MAX_TOKENS")
    assert error_in(Event("", cut, b"data: " + cut), Api.GEMINI) is None


ROLE = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
STOP = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("chunks", "is_nothing"),
    [
        ((ROLE + STOP + DONE,), True),
        ((ROLE, STOP[:9], STOP[9:], DONE), True),
        ((ROLE, STOP), True),
        ((ROLE, FIRST, STOP, DONE), False),
        ((ROLE + FIRST, STOP, DONE), False),
    ],
)
async def test_c6_a_stream_that_ends_well_and_has_nothing_in_it_is_found_and_no_byte_lost(
    chunks: tuple[bytes, ...], *, is_nothing: bool
) -> None:
    opening = Opening(FakeAnswer(200, EVENTS, chunks), is_read=True)
    await opening.first_event(CHAT, 60.0)
    assert await opening.is_nothing(CHAT) is is_nothing
    assert await rest_of(opening) == b"".join(chunks)


class Pausing(FakeAnswer):
    """Says no more than this, and does not end."""

    said = ROLE

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.said
        await asyncio.Event().wait()


class Lingering(Pausing):
    said = ROLE + STOP


async def test_a_stream_that_thinks_is_waited_for_no_longer_than_one_that_has_not_begun() -> None:
    opening = Opening(Pausing(200, EVENTS), is_read=True)
    assert await opening.first_event(CHAT, 0.01) is None
    assert await anext(opening.chunks()) == ROLE
    await opening.close()


async def test_neither_is_one_that_does_not_end() -> None:
    opening = Opening(Lingering(200, EVENTS), is_read=True)
    assert await opening.first_event(CHAT, 0.01) is not None
    assert not await opening.is_nothing(CHAT)
    assert await anext(opening.chunks()) == ROLE + STOP
    await opening.close()


BUSY = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'
BEGUN = b'event: message_start\ndata: {"type":"message_start","message":{"content":[]}}\n\nevent: ping\ndata: {}\n\n'


@pytest.mark.parametrize("chunks", [(BEGUN + BUSY,), (BEGUN, BUSY), (BEGUN[:30], BEGUN[30:90], BEGUN[90:] + BUSY)])
async def test_an_error_before_anything_was_said_is_found(chunks: tuple[bytes, ...]) -> None:
    opening = Opening(FakeAnswer(200, EVENTS, chunks), is_read=False)
    event = await opening.first_event(Api.ANTHROPIC_MESSAGES, 60.0)
    assert event is not None
    error = error_in(event, Api.ANTHROPIC_MESSAGES)
    assert error is not None
    assert error.status == 529


async def test_a_stream_that_ends_before_anything_was_said_is_no_answer() -> None:
    with pytest.raises(UpstreamCut, match="before it began"):
        await Opening(FakeAnswer(200, EVENTS, (ROLE,)), is_read=False).first_event(CHAT, 60.0)


async def test_a_preamble_in_very_many_pieces_is_let_through() -> None:
    opening = Opening(FakeAnswer(200, EVENTS, [ROLE] * 99), is_read=False)
    assert await opening.first_event(CHAT, 60.0) is None
    assert await rest_of(opening) == ROLE * 99


def test_what_merely_speaks_of_errors_is_none() -> None:
    assert error_in(Event("", b'{"choices":[{"delta":{"content":"an error"}}]}', b"an error"), CHAT) is None
    assert error_in(Event("", b'{"choices":[]}', b"{}"), CHAT) is None


class Bucket:
    """Takes one answer in, a chunk at a time."""

    def __init__(self) -> None:
        self.content = b""

    def take(self, chunk: bytes) -> bool:
        self.content += chunk
        return False

    async def ready(self) -> None: ...


@pytest.mark.parametrize("reads_ahead", [True, False])
async def test_what_was_read_ahead_is_poured_first(reads_ahead: bool) -> None:
    opening, bucket = Opening(FakeAnswer(200, EVENTS, (FIRST, b": bye\n\n")), is_read=False), Bucket()
    if reads_ahead:
        await opening.first_event(CHAT, 1.0)
    await opening.pour(bucket)
    assert bucket.content == FIRST + b": bye\n\n"


async def test_what_is_late_or_compressed_is_poured_whole() -> None:
    answer, bucket = SlowAnswer(), Bucket()
    opening = Opening(answer, is_read=False)
    assert await opening.first_event(CHAT, 0.001) is None
    answer.goes_on.set()
    await opening.pour(bucket)
    packed = gzip.compress(FIRST)
    await Opening(FakeAnswer(200, EVENTS, (packed[:20], packed[20:])), is_read=True).pour(bucket)
    assert bucket.content == FIRST + b"data: [DONE]\n\n" + FIRST


class ReadyAnswer(FakeAnswer):
    """Has all of itself at hand."""

    is_ready = True


async def test_what_is_there_is_looked_at_without_a_task_and_no_further_than_its_first_event() -> None:
    broken = FIRST + b"data: " + b"x" * 100
    opening = Opening(ReadyAnswer(200, EVENTS, (b": hi\n\n", broken)), is_read=False)
    before = asyncio.all_tasks()
    event = await opening.first_event(CHAT, 1.0)
    assert asyncio.all_tasks() == before
    assert event is not None
    assert event.data == FIRST[6:-2]
    assert opening.is_ready
    assert await rest_of(opening) == b": hi\n\n" + broken


async def test_an_answer_in_one_piece_that_is_there_need_not_be_waited_for() -> None:
    opening = Opening(ReadyAnswer(200, JSON, (b"{}", b"{}")), is_read=False)
    await opening.begin()
    assert await rest_of(opening) == b"{}{}"


class WholeAnswer(FakeAnswer):
    """Has come in one read."""

    def arrived(self) -> bytes | None:
        return b"".join(chunk for chunk in self._chunks if isinstance(chunk, bytes))


async def test_an_answer_in_one_piece_that_is_all_here_is_begun_and_taken_at_once() -> None:
    opening = Opening(WholeAnswer(200, JSON, (b"{", b"}")), is_read=False)
    assert opening.begin_at_once()
    assert opening.arrived() == b"{}"
    assert await rest_of(opening) == b""


async def test_what_is_not_taken_at_once_comes_in_chunks() -> None:
    opening = Opening(WholeAnswer(200, JSON, (gzip.compress(PLAIN),)), is_read=False)
    assert opening.begin_at_once()
    assert await rest_of(opening) == PLAIN


@pytest.mark.parametrize("headers", [EVENTS, JSON])
async def test_a_stream_and_what_is_still_on_its_way_are_waited_for(headers: Headers) -> None:
    answer = WholeAnswer(200, headers, (FIRST,)) if headers is EVENTS else FakeAnswer(200, headers, (PLAIN,))
    opening = Opening(answer, is_read=False)
    assert not opening.begin_at_once()
    assert opening.arrived() is None
    assert await rest_of(opening) in (FIRST, PLAIN)


@pytest.mark.parametrize("body", [b"", b"<html>"])
async def test_what_is_all_here_and_no_answer_is_none(body: bytes) -> None:
    with pytest.raises(UpstreamCut):
        Opening(WholeAnswer(200, JSON, (body,)), is_read=False).begin_at_once()

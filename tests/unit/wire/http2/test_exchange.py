"""What a handler may do with an exchange, on a line that only notes what it is told."""

import asyncio

import pytest
from hpack import Decoder

from kinference.errors import ClientGone
from kinference.ports import Headers
from kinference.wire.exchange import respond
from kinference.wire.http2.exchange import Http2Exchange
from kinference.wire.http2.headers import literal
from kinference.wire.http2.http_head import HttpHead


class NotedLine:
    peer = "peer"
    peer_names = ("agent.local",)

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.body = b""
        self.taken_bytes = self.times_needed = 0
        self.is_finished = self.is_reset = False
        self.is_free = True

    def date(self) -> bytes:
        return literal(b"date", b"now")

    def taken(self, stream_id: int, size: int) -> None:
        assert stream_id == 1
        self.taken_bytes += size

    def needs_bytes(self) -> None:
        self.times_needed += 1

    def send_head(self, stream_id: int, block: bytes) -> None:
        assert stream_id == 1
        self.heads.append(block)

    def send_body(self, stream_id: int, chunk: bytes) -> bool:
        assert stream_id == 1
        self.body += chunk
        return self.is_free

    def finish(self, stream_id: int) -> None:
        assert stream_id == 1
        self.is_finished = True

    def reset(self, stream_id: int) -> None:
        assert stream_id == 1
        self.is_reset = True

    def fields(self) -> list[tuple[str, str]]:
        (block,) = self.heads
        return [(str(name), str(value)) for name, value in Decoder().decode(block)]


def exchange_on(line: NotedLine, method: str = "GET", headers: Headers = ((b"host", b"h"),)) -> Http2Exchange:
    return Http2Exchange(line, 1, HttpHead(method, "/p", "q=1", headers), 5.0)


async def test_the_request_is_told_as_it_came() -> None:
    exchange = exchange_on(NotedLine())
    assert (exchange.method, exchange.path, exchange.query) == ("GET", "/p", "q=1")
    assert (exchange.peer, exchange.accepted_at, exchange.headers) == ("peer", 5.0, ((b"host", b"h"),))
    assert exchange.peer_names == ("agent.local",)


async def test_a_whole_answer_is_head_and_body_and_an_end() -> None:
    line = NotedLine()
    await respond(exchange_on(line), 200, b"hello", b"text/plain")
    assert line.fields() == [
        (":status", "200"),
        ("content-type", "text/plain"),
        ("content-length", "5"),
        ("date", "now"),
        ("server", "kinference"),
    ]
    assert (line.body, line.is_finished) == (b"hello", True)


async def test_what_is_about_connections_has_no_place_in_a_stream() -> None:
    line = NotedLine()
    await respond(exchange_on(line), 403, b"no", b"text/plain", (b"connection", b"close"))
    assert "connection" not in dict(line.fields())


async def test_the_body_is_credited_as_it_is_taken() -> None:
    line = NotedLine()
    exchange = exchange_on(line)
    exchange.receive(b"abc")
    exchange.receive(b"de")
    assert line.taken_bytes == 0
    body = aiter(exchange.body())
    assert await anext(body) == b"abc"
    assert line.taken_bytes == 5
    assert await anext(body) == b"de"
    waiting = asyncio.ensure_future(anext(body))
    assert (line.times_needed, exchange.is_waiting) == (0, False)
    await asyncio.sleep(0)
    assert (line.times_needed, exchange.is_waiting) == (1, True), "the client must be free to send"
    exchange.receive(b"f")
    assert await waiting == b"f"
    assert not exchange.is_waiting
    exchange.end_body()
    assert [piece async for piece in body] == []


async def test_a_body_that_breaks_off_is_a_client_gone() -> None:
    exchange = exchange_on(NotedLine())
    waiting = asyncio.ensure_future(anext(aiter(exchange.body())))
    await asyncio.sleep(0)
    exchange.lose()
    with pytest.raises(ClientGone):
        await waiting
    with pytest.raises(ClientGone):
        await exchange.start(200, ())
    exchange.give_up(500)


async def test_a_writer_waits_until_the_client_has_taken_all_or_is_gone() -> None:
    line = NotedLine()
    exchange = exchange_on(line)
    await exchange.start(200, ())
    line.is_free = False
    writing = asyncio.ensure_future(exchange.write(b"a"))
    await asyncio.sleep(0)
    assert not writing.done()
    exchange.go_on()
    await writing
    writing = asyncio.ensure_future(exchange.write(b"b"))
    await asyncio.sleep(0)
    exchange.lose()
    with pytest.raises(ClientGone):
        await writing


async def test_a_client_that_has_caught_up_meanwhile_is_not_waited_for() -> None:
    line = NotedLine()
    exchange = exchange_on(line)
    await exchange.start(200, ())
    line.is_free = False
    assert not exchange.send(b"a")
    exchange.go_on()
    await exchange.drained()
    assert exchange.send(b"")
    exchange.lose()
    with pytest.raises(ClientGone):
        await exchange.drained()


async def test_reading_and_writing_wait_beside_each_other() -> None:
    line = NotedLine()
    exchange = exchange_on(line)
    await exchange.start(200, ())
    line.is_free = False
    reading, writing = asyncio.ensure_future(anext(aiter(exchange.body()))), asyncio.ensure_future(exchange.write(b"a"))
    await asyncio.sleep(0)
    exchange.receive(b"in")
    exchange.go_on()
    assert await reading == b"in"
    await writing


async def test_continue_is_sent_when_the_body_is_wanted_and_not_there() -> None:
    line = NotedLine()
    exchange = exchange_on(line, headers=((b"expect", b"100-Continue"),))
    waiting = asyncio.ensure_future(anext(aiter(exchange.body())))
    await asyncio.sleep(0)
    assert line.fields() == [(":status", "100")]
    exchange.receive(b"x")
    await waiting


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
async def test_answers_that_have_no_body_get_none(method: str, status: int) -> None:
    line = NotedLine()
    exchange = exchange_on(line, method)
    await exchange.start(status, ((b"content-length", b"5"),) if method == "HEAD" else ())
    await exchange.write(b"unwanted")
    await exchange.finish()
    assert (line.body, line.is_finished) == (b"", True)


async def test_an_answer_that_is_broken_off_stays_so() -> None:
    line = NotedLine()
    exchange = exchange_on(line)
    await exchange.start(200, ())
    exchange.abort()
    assert line.is_reset
    with pytest.raises(ClientGone):
        await exchange.write(b"late")
    await exchange.finish()
    assert not line.is_finished


async def test_given_up_on_an_answer_is_a_bare_status_or_broken_off() -> None:
    line, begun = NotedLine(), NotedLine()
    exchange_on(line).give_up(500)
    assert line.fields()[0] == (":status", "500")
    assert line.is_finished
    exchange = exchange_on(begun)
    await exchange.start(200, ())
    exchange.give_up(500)
    assert begun.is_reset


async def test_a_line_break_in_a_field_is_no_field() -> None:
    with pytest.raises(ValueError, match="line break"):
        await exchange_on(NotedLine()).start(200, ((b"x", b"a\r\nb: c"),))


async def test_a_length_is_a_promise() -> None:
    exchange = exchange_on(NotedLine())
    await exchange.start(200, ((b"content-length", b"1"),))
    with pytest.raises(AssertionError, match="fewer"):
        await exchange.finish()
    with pytest.raises(AssertionError, match="more"):
        await exchange.write(b"ab")

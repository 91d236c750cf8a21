"""The HTTP client carriers, against raw peers that behave and misbehave on purpose: one behaviour, whichever asks."""

import asyncio
import os
import resource
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from kinference.errors import ClientGone, NoConnectionLeft, UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from kinference.ports import Upstream, UpstreamRequest, UpstreamTimeouts

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]]


@dataclass
class Peer:
    """A raw server: runs a script on each connection, told which one (from 0) it is."""

    port: int = 0
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def take(self, reader: asyncio.StreamReader) -> bytes:
        """The head of the next request, after its body."""
        raw = await reader.readuntil(b"\r\n\r\n")
        for line in raw.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                raw += await reader.readexactly(int(line.partition(b":")[2]))
        self.requests.append(raw)
        return raw


@asynccontextmanager
async def peer(script: Callable[[Peer], Script]) -> AsyncIterator[Peer]:
    told = Peer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told.connections += 1
        try:
            await script(told)(reader, writer, told.connections - 1)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    told.port = server.sockets[0].getsockname()[1]
    async with server:
        yield told


def answering(*answers: bytes) -> Callable[[Peer], Script]:
    """Each request on any connection gets the next of the answers; after the last the connection closes."""

    def bind(told: Peer) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _number: int) -> None:
            while len(told.requests) < len(answers):
                await told.take(reader)
                writer.write(answers[len(told.requests) - 1])
                await writer.drain()

        return script

    return bind


def get(told: Peer, target: str = "/", timeouts: UpstreamTimeouts | None = None) -> UpstreamRequest:
    return UpstreamRequest("GET", told.origin, target, (), timeouts=timeouts or UpstreamTimeouts())


def post(told: Peer, *body: bytes) -> UpstreamRequest:
    return UpstreamRequest("POST", told.origin, "/", ((b"content-type", b"application/json"),), body)


async def exchange(upstream: Upstream, request: UpstreamRequest) -> tuple[int, bytes]:
    answer = await upstream.send(request)
    try:
        return answer.status, b"".join([chunk async for chunk in answer.chunks()])
    finally:
        await answer.close()


async def test_nothing_is_added_to_a_request_but_host_and_framing(upstream: Upstream) -> None:
    async with peer(answering(OK)) as told:
        request = UpstreamRequest(
            "POST", told.origin, "/v1/a%2Fb?q=c%20d&e=+", ((b"x-a", b"1"), (b"x-a", b"2")), (b"{}",)
        )
        assert await exchange(upstream, request) == (200, b"ok")
    line, *fields = told.requests[0].partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert line == b"POST /v1/a%2Fb?q=c%20d&e=+ HTTP/1.1"
    assert sorted(f.lower() for f in fields) == sorted(
        [f"host: 127.0.0.1:{told.port}".encode(), b"x-a: 1", b"x-a: 2", b"content-length: 2"]
    )


@pytest.mark.parametrize("pieces", [(b"{", b"}"), (b"a" * 100_000, b"b" * 3_000_000)])
async def test_a_body_in_pieces_arrives_as_one_with_its_length(upstream: Upstream, pieces: tuple[bytes, ...]) -> None:
    async with peer(answering(OK)) as told:
        await exchange(upstream, post(told, *pieces))
    assert told.requests[0].partition(b"\r\n\r\n")[2] == b"".join(pieces)
    assert b"chunked" not in told.requests[0]


async def test_the_answer_is_told_as_sent(upstream: Upstream) -> None:
    raw = b"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nSet-Cookie: a=b\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8bxx"
    async with peer(answering(raw, OK)) as told:
        answer = await upstream.send(get(told))
        body = b"".join([chunk async for chunk in answer.chunks()])
        await answer.close()
        await exchange(upstream, get(told))
    assert (answer.status, body) == (429, b"\x1f\x8bxx")
    assert (b"retry-after", b"7") in answer.headers
    assert b"cookie" not in told.requests[1].lower()


async def test_a_redirect_is_not_followed(upstream: Upstream) -> None:
    async with peer(answering(b"HTTP/1.1 302 Found\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n")) as told:
        assert await exchange(upstream, get(told)) == (302, b"")
    assert len(told.requests) == 1


async def test_head_ends_without_a_body(upstream: Upstream) -> None:
    async with peer(answering(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n", OK)) as told:
        assert await exchange(upstream, UpstreamRequest("HEAD", told.origin, "/", ())) == (200, b"")
        assert await exchange(upstream, get(told)) == (200, b"ok")


async def test_a_chunk_is_handed_on_before_the_next_one_is_sent(upstream: Upstream) -> None:
    confirmed = asyncio.Event()

    def bind(told: Peer) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _number: int) -> None:
            await told.take(reader)
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n")
            await confirmed.wait()
            writer.write(b"3\r\ntwo\r\n0\r\n\r\n")
            await writer.drain()

        return script

    async with peer(bind) as told:
        answer = await upstream.send(get(told))
        chunks = answer.chunks()
        assert await anext(chunks) == b"one"
        confirmed.set()
        assert [chunk async for chunk in chunks] == [b"two"]
        await answer.close()


class Bucket:
    """Wants no more after each chunk until it was asked whether it is ready."""

    def __init__(self, *, wants_more: bool, failure: Exception | None = None) -> None:
        self.chunks: list[bytes] = []
        self.got = asyncio.Event()
        self._wants_more, self._failure = wants_more, failure

    def take(self, chunk: bytes) -> bool:
        self.chunks.append(chunk)
        self.got.set()
        return self._wants_more

    async def ready(self) -> None:
        if self._failure is not None:
            raise self._failure
        await asyncio.sleep(0)


def in_two(confirmed: asyncio.Event, rest: bytes = b"3\r\ntwo\r\n0\r\n\r\n") -> Callable[[Peer], Script]:
    """Sends the rest of its answer when told."""

    def bind(told: Peer) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _number: int) -> None:
            await told.take(reader)
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n")
            await confirmed.wait()
            writer.write(rest)
            await writer.drain()

        return script

    return bind


@pytest.mark.parametrize("wants_more", [True, False])
async def test_an_answer_is_poured_as_it_comes_to_its_end(upstream: Upstream, wants_more: bool) -> None:
    confirmed, bucket = asyncio.Event(), Bucket(wants_more=wants_more)
    async with peer(in_two(confirmed)) as told, asyncio.TaskGroup() as tasks:
        answer = await upstream.send(get(told))
        pouring = tasks.create_task(answer.pour(bucket))
        await bucket.got.wait()
        assert (bucket.chunks, pouring.done()) == ([b"one"], False)
        confirmed.set()
        await pouring
        assert b"".join(bucket.chunks) == b"onetwo"
        await answer.close()


async def test_what_is_left_of_an_answer_is_poured_and_its_break_told(upstream: Upstream) -> None:
    confirmed, bucket = asyncio.Event(), Bucket(wants_more=True)
    async with peer(in_two(confirmed, b"3\r\ntwo\r\n")) as told:
        answer = await upstream.send(get(told))
        assert await anext(answer.chunks()) == b"one"
        confirmed.set()
        with pytest.raises(UpstreamCut):
            await answer.pour(bucket)
        assert b"".join(bucket.chunks) == b"two"
        await answer.close()


async def test_what_fails_where_an_answer_is_poured_ends_the_pouring(upstream: Upstream) -> None:
    confirmed, bucket = asyncio.Event(), Bucket(wants_more=False, failure=ClientGone("left"))
    async with peer(in_two(confirmed)) as told:
        answer = await upstream.send(get(told))
        with pytest.raises(ClientGone):
            await answer.pour(bucket)
        await answer.close()
        confirmed.set()
    assert bucket.chunks == [b"one"]


async def test_a_connection_read_to_its_end_is_used_again(upstream: Upstream) -> None:
    async with peer(answering(OK, OK, OK)) as told:
        for _ in range(3):
            await exchange(upstream, post(told, b"{}"))
    assert told.connections == 1


async def test_an_answer_left_unread_closes_its_connection(upstream: Upstream) -> None:
    closed = asyncio.Event()

    def bind(told: Peer) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _number: int) -> None:
            await told.take(reader)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
            assert await reader.read() == b""
            closed.set()

        return script

    async with peer(bind) as told:
        answer = await upstream.send(get(told))
        await answer.close()
        await answer.close()
        await closed.wait()


async def test_cancelling_a_send_closes_its_connection(upstream: Upstream) -> None:
    asked, closed = asyncio.Event(), asyncio.Event()

    def bind(told: Peer) -> Script:
        async def script(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter, _number: int) -> None:
            await told.take(reader)
            asked.set()
            assert await reader.read() == b""
            closed.set()

        return script

    async with peer(bind) as told, asyncio.TaskGroup() as group:
        sending = group.create_task(upstream.send(post(told, b"{}")))
        await asked.wait()
        sending.cancel()
        await closed.wait()


@pytest.mark.parametrize(
    "framing",
    [b"content-length: 99\r\n\r\nhalf", b"transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"],
    ids=["length", "chunked"],
)
async def test_an_answer_that_breaks_off_gives_what_came_and_then_is_cut(upstream: Upstream, framing: bytes) -> None:
    async with peer(answering(b"HTTP/1.1 200 OK\r\n" + framing)) as told:
        answer = await upstream.send(get(told))
        chunks = answer.chunks()
        assert await anext(chunks) == b"half"
        with pytest.raises(UpstreamCut, match="broke its answer off"):
            await anext(chunks)
        await answer.close()


async def test_bytes_that_wait_unread_when_the_answer_breaks_off_are_not_lost(upstream: Upstream) -> None:
    gone = asyncio.Event()

    def bind(told: Peer) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _number: int) -> None:
            await told.take(reader)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nhalf")
            writer.close()
            await writer.wait_closed()
            gone.set()

        return script

    async with peer(bind) as told, peer(answering(OK)) as other:
        answer = await upstream.send(get(told))
        await gone.wait()
        await exchange(upstream, get(other))  # a round trip later the end of the first connection has been seen
        chunks = answer.chunks()
        assert await anext(chunks) == b"half"
        with pytest.raises(UpstreamCut):
            await anext(chunks)
        await answer.close()


async def test_a_malformed_chunk_is_a_cut(upstream: Upstream) -> None:
    async with peer(answering(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")) as told:
        with pytest.raises(UpstreamCut):
            await exchange(upstream, get(told))


async def test_an_answer_that_ends_with_its_connection_is_complete(upstream: Upstream) -> None:
    async with peer(answering(b"HTTP/1.1 200 OK\r\n\r\nall of it")) as told:
        assert await exchange(upstream, get(told)) == (200, b"all of it")


async def test_an_answer_that_is_not_http_is_a_cut(upstream: Upstream) -> None:
    async with peer(answering(b"SSH-2.0-OpenSSH\r\n\r\n")) as told:
        with pytest.raises(UpstreamCut, match="other than HTTP"):
            await upstream.send(post(told, b"{}"))


async def test_a_head_that_breaks_off_is_a_cut_and_not_sent_again(upstream: Upstream) -> None:
    async with peer(answering(b"HTTP/1.1 200 OK\r\ncontent-le")) as told:
        with pytest.raises(UpstreamCut):
            await upstream.send(post(told, b"{}"))
    assert len(told.requests) == 1


async def test_a_refused_connection_is_unreachable_and_the_message_names_the_origin_only(
    upstream: Upstream,
) -> None:
    async with peer(answering()) as told:
        pass
    request = UpstreamRequest(
        "POST", told.origin, "/v1?key=sk-secret", ((b"authorization", b"Bearer sk-secret"),), (b"{}",)
    )
    with pytest.raises(UpstreamUnreachable) as caught:
        await upstream.send(request)
    assert str(caught.value) == f"{told.origin} is unreachable: connection refused"
    assert caught.value.__cause__ is None


async def test_a_process_without_a_descriptor_left_says_so_and_blames_nobody(upstream: Upstream) -> None:
    async with peer(answering(OK)) as told:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        next_one = os.dup(0)
        os.close(next_one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (next_one, hard))
        try:
            with pytest.raises(NoConnectionLeft, match=f"no connection to {told.origin} can be opened"):
                await upstream.send(get(told))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_name_without_an_address_is_unreachable(upstream: Upstream) -> None:
    with pytest.raises(UpstreamUnreachable, match=r"^http://no-such-host\.invalid:80 has no known address$"):
        await upstream.send(UpstreamRequest("GET", "http://no-such-host.invalid:80", "/", ()))


async def test_a_connection_closed_before_any_answer_is_unreachable(upstream: Upstream) -> None:
    def bind(told: Peer) -> Script:
        async def script(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter, _number: int) -> None:
            await told.take(reader)

        return script

    async with peer(bind) as told:
        with pytest.raises(UpstreamUnreachable, match="closed the connection without an answer"):
            await upstream.send(post(told, b"{}"))
    assert len(told.requests) == 1


async def test_h14_a_kept_connection_that_died_is_replaced_by_a_fresh_one_once(upstream: Upstream) -> None:
    def bind(told: Peer) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
            await told.take(reader)
            writer.write(OK)
            await told.take(reader)
            if number:
                writer.write(OK)

        return script

    async with peer(bind) as told:
        await exchange(upstream, post(told, b"first"))
        assert await exchange(upstream, post(told, b"second")) == (200, b"ok")
    assert told.connections == 2
    assert [request.partition(b"\r\n\r\n")[2] for request in told.requests] == [b"first", b"second", b"second"]


async def test_a_destination_that_never_answers_times_out(upstream: Upstream) -> None:
    def bind(told: Peer) -> Script:
        async def script(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter, _number: int) -> None:
            await told.take(reader)
            await reader.read()

        return script

    async with peer(bind) as told:
        with pytest.raises(UpstreamTimeout, match=f"{told.origin} sent nothing"):
            await upstream.send(get(told, timeouts=UpstreamTimeouts(first_byte=0.01)))


async def test_a_destination_that_never_comes_to_the_end_of_its_head_times_out(upstream: Upstream) -> None:
    def bind(told: Peer) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _number: int) -> None:
            await told.take(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
            while not reader.at_eof():
                writer.write(b"x")
                await asyncio.sleep(0.01)

        return script

    async with peer(bind) as told:
        with pytest.raises(UpstreamTimeout, match=told.origin):
            await asyncio.wait_for(upstream.send(get(told, timeouts=UpstreamTimeouts(first_byte=0.1))), 60)


async def test_a_destination_that_falls_silent_mid_answer_times_out(upstream: Upstream) -> None:
    def bind(told: Peer) -> Script:
        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _number: int) -> None:
            await told.take(reader)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
            await reader.read()

        return script

    async with peer(bind) as told:
        answer = await upstream.send(get(told, timeouts=UpstreamTimeouts(between_chunks=0.05)))
        chunks = answer.chunks()
        assert await anext(chunks) == b"half"
        with pytest.raises(UpstreamTimeout, match="fell silent"):
            await anext(chunks)
        await answer.close()

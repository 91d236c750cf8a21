"""Answers from bytes: heads, bodies by each framing, and what is no answer."""

import pytest

from kinference.wire.http1.replies import NotHttp, ReplyReader

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def asked(*, to_head: bool = False) -> ReplyReader:
    reply = ReplyReader()
    reply.expect(to_head=to_head)
    return reply


def fed(*data: bytes, to_head: bool = False) -> ReplyReader:
    reply = asked(to_head=to_head)
    for piece in data:
        reply.feed(piece)
    return reply


def test_an_answer_is_a_status_fields_and_pieces() -> None:
    reply = fed(b"HTTP/1.1 201 Made\r\nX-A:  1 \r\ncontent-length: 4\r\n\r\nab", b"cd")
    assert (reply.status, reply.headers) == (201, [(b"x-a", b"1"), (b"content-length", b"4")])
    assert reply.pieces == [b"ab", b"cd"]
    assert reply.is_complete
    assert reply.is_reusable


def test_one_connection_gives_answer_after_answer() -> None:
    reply = fed(OK)
    reply.expect(to_head=False)
    assert (reply.status, reply.pieces, reply.is_complete) == (0, [], False)
    reply.feed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\nx: y\r\n\r\n")
    assert (reply.pieces, reply.is_complete, reply.is_reusable) == ([b"a", b"bc"], True, True)


def test_interim_answers_are_passed_over() -> None:
    reply = fed(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\n", OK)
    assert (reply.status, reply.headers, reply.pieces) == (200, [(b"content-length", b"2")], [b"ok"])


@pytest.mark.parametrize("sent", [b"", b"\r", b"a body all the same"])
def test_an_answer_to_head_has_no_body_and_no_other_follows_it(sent: bytes) -> None:
    reply = fed(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n" + sent, to_head=True)
    assert (reply.pieces, reply.is_complete, reply.is_reusable) == ([], True, False)


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_some_answers_have_no_body_by_their_status(status: bytes) -> None:
    assert fed(b"HTTP/1.1 " + status + b"\r\n\r\n").is_complete


def test_without_framing_the_end_of_the_connection_is_the_end() -> None:
    reply = fed(b"HTTP/1.1 200 OK\r\n\r\nall of it")
    assert not reply.is_complete
    assert reply.end()
    assert reply.pieces == [b"all of it"]
    assert not reply.is_reusable


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        OK[:-1],
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n",
    ],
)
def test_with_framing_it_is_a_cut(raw: bytes) -> None:
    reply = fed(raw) if raw else asked()
    assert not reply.end()


@pytest.mark.parametrize(
    "raw",
    [
        OK + b"x",
        OK + OK,
        OK + b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
        OK.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"),
        OK.replace(b"1.1", b"1.0"),
    ],
)
def test_a_connection_that_says_more_or_ends_is_not_used_again(raw: bytes) -> None:
    reply = fed(raw)
    assert (reply.pieces, reply.is_complete, reply.is_reusable) == ([b"ok"], True, False)


@pytest.mark.parametrize("pieces", [[OK + b"\r\n"], [OK, b"\r\n"], [OK, b"\r", b"\n"]])
def test_line_breaks_behind_an_answer_are_nothing_however_they_come(pieces: list[bytes]) -> None:
    reply = fed(*pieces)
    assert (reply.pieces, reply.is_complete, reply.is_reusable) == ([b"ok"], True, True)


def test_line_breaks_that_come_after_the_next_request_begin_no_answer() -> None:
    reply = fed(OK)
    reply.expect(to_head=False)
    reply.feed(b"\r\n")
    assert not reply.has_begun
    reply.feed(b"\r\nHTTP/1.1 200")
    assert reply.has_begun


def test_bytes_that_nobody_asked_for_spoil_the_connection() -> None:
    reply = fed(OK)
    reply.feed(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
    assert not reply.is_reusable


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\nx: y\n\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 300 + b"\r\n",
    ],
)
def test_what_is_no_answer_is_refused(raw: bytes) -> None:
    with pytest.raises(NotHttp):
        fed(raw)


@pytest.mark.parametrize(
    "start", [b"HTTP/1.1 200 OK\r\nx: ", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;"]
)
def test_a_head_or_an_extension_without_end_is_refused(start: bytes) -> None:
    reply = fed(start)

    def flood() -> None:
        for _ in range(100):
            reply.feed(b"a" * 1000)

    with pytest.raises(NotHttp):
        flood()


@pytest.mark.parametrize("size", [1_000, 16_000, 70_000, 10**6])
def test_a_head_beyond_the_limit_is_refused_however_it_is_cut(size: int) -> None:
    allowed, beyond = (b"HTTP/1.1 204 OK\r\n" + b"x: %b\r\n" % (b"a" * 995) * times + b"\r\n" for times in (64, 70))
    assert fed(*(allowed[at : at + size] for at in range(0, len(allowed), size))).is_complete
    with pytest.raises(NotHttp):
        fed(*(beyond[at : at + size] for at in range(0, len(beyond), size)))


def test_nothing_is_no_beginning() -> None:
    assert not fed(b"").has_begun
    assert fed(b"", OK, b"").is_complete

"""One connection to a destination, told by a fake transport what happens on it."""

import pytest

from kinference.errors import UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from kinference.wire.http1.deadlines import NEVER
from kinference.wire.http1.link import Link
from kinference.wire.turn import Turn
from tests.unit.wire.http1.linked import HEAD, FakeTransport, opened


def linked(turn: Turn | None = None) -> tuple[Link, FakeTransport]:
    link, transport = opened(turn=turn)
    link.ask([b"GET /", b" HTTP/1.1"], to_head=False)
    return link, transport


async def test_what_comes_before_a_request_was_written_is_no_answer_to_it_and_the_request_can_go_elsewhere() -> None:
    """One engine's unasked second answer would else be the next client's."""
    turn = Turn()
    turn.write(FakeTransport(), b"first of the turn")
    link, transport = opened(turn=turn)
    link.ask([b"GET / HTTP/1.1"], to_head=False)
    link.data_received(HEAD + b"abcd")
    with pytest.raises(UpstreamUnreachable, match="before it was asked"):
        link.check()
    turn.flush()
    assert (transport.written, transport.is_aborted) == (b"", True)


async def test_what_comes_once_the_turns_pieces_were_written_is_the_answer() -> None:
    turn = Turn()
    turn.write(FakeTransport(), b"first of the turn")
    link, transport = opened(turn=turn)
    link.ask([b"GET / HTTP/1.1"], to_head=False)
    turn.flush()
    link.data_received(HEAD + b"abcd")
    assert (transport.written, link.take()) == (b"GET / HTTP/1.1", b"abcd")


async def test_a_request_goes_out_and_its_answer_comes_in_and_the_link_is_kept() -> None:
    link, transport = linked()
    assert transport.written == b"GET / HTTP/1.1"
    link.data_received(HEAD + b"ab")
    assert link.take() == b"ab"
    assert link.take() == b""
    link.data_received(b"cd")
    assert link.take() == b"cd"
    assert link.reply.is_complete
    assert link.keep(4)
    assert not transport.is_aborted


async def test_pieces_that_waited_are_taken_together() -> None:
    link, _ = linked()
    for piece in (HEAD, b"a", b"bc"):
        link.data_received(piece)
    assert link.take() == b"abc"


async def test_what_is_poured_goes_through_in_the_call_that_brings_it() -> None:
    link, _ = linked()
    link.data_received(HEAD)
    taken: list[bytes] = []

    def take(chunk: bytes) -> bool:
        taken.append(chunk)
        return True

    pouring = link.pour(take, 1)
    for piece in (b"a", b"b", b"cd"):
        link.data_received(piece)
        assert taken[-1] == piece
    await pouring
    assert link.reply.is_complete


async def test_who_wants_no_more_for_now_is_given_no_more() -> None:
    link, _ = linked()
    link.data_received(HEAD)
    taken: list[bytes] = []

    def take(chunk: bytes) -> bool:
        taken.append(chunk)
        return False

    pouring = link.pour(take, 1)
    link.data_received(b"a")
    link.data_received(b"b")
    await pouring
    assert (taken, link.take()) == ([b"a"], b"b")


async def test_a_destination_that_falls_silent_while_it_is_poured_is_told_and_one_that_speaks_is_not() -> None:
    link, _ = linked()
    link.data_received(HEAD)
    pouring = link.pour(lambda _chunk: True, 9)
    link.deadline = 0.0
    link.data_received(b"a")
    assert link.deadline > 0.0
    link.expire()
    await pouring
    with pytest.raises(UpstreamTimeout, match="mid-answer"):
        link.check()


async def test_who_stops_pouring_is_given_nothing_more() -> None:
    link, _ = linked()
    link.data_received(HEAD)
    taken: list[bytes] = []

    def take(chunk: bytes) -> bool:
        taken.append(chunk)
        return True

    link.pour(take, 9).cancel()
    link.stop_pouring()
    link.data_received(b"ab")
    assert (taken, link.take()) == ([], b"ab")


async def test_a_wait_that_was_cancelled_leaves_no_deadline_behind_once_something_comes() -> None:
    link, transport = linked()
    link.more(9).cancel()
    link.data_received(HEAD)
    assert link.deadline == NEVER
    link.more(9).cancel()
    link.expire()
    assert transport.is_aborted
    await link.more(9)  # over at once
    with pytest.raises(UpstreamTimeout, match="mid-answer"):
        link.check()


@pytest.mark.parametrize("why", ["unfinished", "unsent", "spoiled", "held"])
async def test_a_link_that_may_not_be_used_again_is_closed(why: str) -> None:
    link, transport = linked()
    link.data_received(HEAD + (b"ab" if why == "unfinished" else b"abcd"))
    if why == "unsent":
        transport.unsent = 1
    if why == "spoiled":
        link.data_received(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
    if why == "held":
        link.close()
    assert not link.keep(4)
    assert transport.is_aborted


async def test_a_reader_that_lags_makes_the_destination_wait() -> None:
    link, transport = linked()
    link.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 9000000\r\n\r\n")
    link.data_received(b"x" * 300_000)
    assert not transport.is_reading
    assert len(link.take()) == 300_000
    assert transport.is_reading


@pytest.mark.parametrize(
    ("came", "error", "message"),
    [
        (b"", UpstreamUnreachable, "closed the connection without an answer"),
        (b"HTTP/1.1 200 OK\r\n", UpstreamCut, "broke off inside the head"),
        (HEAD + b"ab", UpstreamCut, "broke its answer off"),
    ],
)
async def test_how_far_it_came_says_how_it_failed(came: bytes, error: type[Exception], message: str) -> None:
    link, _ = linked()
    if came:
        link.data_received(came)
    link.connection_lost(None)
    assert link.take() == (b"ab" if came.endswith(b"ab") else b"")

    await link.more(1)
    with pytest.raises(error, match=message):
        link.check()


async def test_a_reset_is_no_end_of_an_answer() -> None:
    link, _ = linked()
    link.data_received(b"HTTP/1.1 200 OK\r\n\r\nhalf")
    link.connection_lost(ConnectionResetError())
    assert link.take() == b"half"
    link, _ = linked()
    link.data_received(b"HTTP/1.1 200 OK\r\n\r\nwhole")
    link.connection_lost(None)
    assert link.reply.is_complete


async def test_silence_is_told_apart_by_when_it_began() -> None:
    link, transport = linked()
    await link.more(0.01)
    with pytest.raises(UpstreamTimeout, match=r"sent nothing for 0\.01 s"):
        link.check()
    assert transport.is_aborted
    link, _ = linked()
    link.data_received(HEAD)
    await link.more(0.01)
    with pytest.raises(UpstreamTimeout, match=r"fell silent for 0\.01 s mid-answer"):
        link.check()


async def test_a_link_at_rest_is_closed_when_its_time_is_over() -> None:
    link, transport = linked()
    link.data_received(HEAD + b"abcd")
    assert link.keep(0.01)
    await transport.aborted.wait()
    assert not link.is_open


async def test_who_waits_may_be_called_back_and_once() -> None:
    link, _ = linked()
    told: list[int] = []
    link.tell(lambda: told.append(link.reply.status), 60)
    link.data_received(HEAD[:9])
    assert told == []
    link.data_received(HEAD[9:])
    link.data_received(b"abcd")
    assert told == [200]


async def test_who_forgets_it_is_not_called_back() -> None:
    link, _ = linked()
    told: list[int] = []
    link.tell(lambda: told.append(1), 60)
    link.forget()
    link.data_received(HEAD + b"abcd")
    link.connection_lost(None)
    assert told == []


async def test_who_keeps_a_link_is_told_of_its_end() -> None:
    link, _ = linked()
    link.data_received(HEAD + b"abcd")
    gone: list[Link] = []
    assert link.keep(4, gone.append)
    link.connection_lost(None)
    assert gone == [link]


class Follower:
    """Notes what it is given. Leaves after so many pieces."""

    def __init__(self, link: Link, leaves_after: int = 99) -> None:
        self.link, self.taken, self.news, self._leaves_after = link, list[bytes](), 0, leaves_after

    def take(self, chunk: bytes) -> bool:
        self.taken.append(chunk)
        if len(self.taken) < self._leaves_after:
            return True
        self.link.stop_pouring()
        return False

    def hear(self) -> None:
        self.news += 1

    def follow(self) -> None:
        self.link.follow(self.take, self.hear, 9)


async def test_who_follows_is_given_what_is_here_and_what_comes_and_told_of_the_end() -> None:
    turn = Turn()
    link, _ = linked(turn)
    link.data_received(HEAD + b"a")
    follower = Follower(link)
    follower.follow()
    assert (follower.taken, follower.news) == ([b"a"], 0)
    link.deadline = 0.0
    link.data_received(b"bc")
    assert (follower.taken, follower.news, link.deadline > 0.0) == ([b"a", b"bc"], 0, True)
    link.data_received(b"d")
    assert (follower.taken, follower.news, link.deadline) == ([b"a", b"bc", b"d"], 1, NEVER)
    assert link.keep(4)
    link.ask([b"GET /"], to_head=False)
    turn.flush()
    link.data_received(HEAD + b"efgh")
    assert (len(follower.taken), follower.news, link.take()) == (3, 1, b"efgh")  # it was for that answer alone


async def test_who_follows_what_is_all_here_is_told_at_once() -> None:
    link, _ = linked()
    link.data_received(HEAD + b"abcd")
    follower = Follower(link)
    follower.follow()
    assert (follower.taken, follower.news) == ([b"abcd"], 1)


async def test_what_says_nothing_for_who_follows_is_no_news() -> None:
    link, _ = linked()
    link.data_received(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    follower = Follower(link)
    follower.follow()
    for byte in b"3\r\nabc\r\n":
        link.data_received(bytes((byte,)))
    assert (follower.taken, follower.news) == ([b"a", b"b", b"c"], 0)
    link.data_received(b"0\r\n\r\n")
    assert follower.news == 1


@pytest.mark.parametrize("when", ["here", "later"])
async def test_who_leaves_is_given_and_told_nothing_more(when: str) -> None:
    link, transport = linked()
    link.data_received(HEAD + (b"a" if when == "here" else b""))
    follower = Follower(link, leaves_after=1)
    follower.follow()
    if when == "later":
        link.data_received(b"a")
    link.data_received(b"bcd")
    assert (follower.taken, follower.news, link.take()) == ([b"a"], 0, b"bcd")
    assert (link.deadline, transport.is_aborted) == (NEVER, False)


@pytest.mark.parametrize("how", ["lost", "silent", "before"])
async def test_who_follows_is_told_that_it_failed_and_why_is_kept(how: str) -> None:
    link, _ = linked()
    link.data_received(HEAD + b"a")
    follower = Follower(link)
    if how == "before":
        link.connection_lost(None)
    follower.follow()
    if how == "lost":
        link.connection_lost(ConnectionResetError())
    elif how == "silent":
        link.expire()
    assert (follower.taken, follower.news, link.has_failed) == ([b"a"], 1, True)
    with pytest.raises((UpstreamCut, UpstreamTimeout)):
        link.check()

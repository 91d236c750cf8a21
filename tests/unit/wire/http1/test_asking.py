"""A request over a connection that is open, and its answer as far as it has come; sockets are in test_upstream."""

import pytest

from kinference.errors import KinferenceError, UpstreamCut, UpstreamUnreachable
from kinference.ports import UpstreamAnswer, UpstreamRequest
from kinference.wire.http1.asking import Asking, Http1Asked
from kinference.wire.http1.pool import Pool
from kinference.wire.over import OVER
from tests.unit.wire.http1.linked import HEAD, FakeTransport, opened

REQUEST = UpstreamRequest("GET", "http://a:1", "/", ())


class Asker:
    """Asks once over a connection that is open."""

    def __init__(self) -> None:
        self.pool, (self.link, self.transport) = Pool(), opened()
        self.pool.give(self.link)
        self.told: list[UpstreamAnswer | KinferenceError | None] = []
        asked = Asking(self.pool).ask(REQUEST, self.told.append)
        assert asked is not None
        self.asked: Http1Asked = asked

    @property
    def answer(self) -> UpstreamAnswer:
        (answer,) = self.told
        assert answer is not None
        assert not isinstance(answer, KinferenceError)
        return answer


async def test_the_answer_is_told_once_its_head_is_here_and_its_connection_is_kept_once_it_was_read() -> None:
    asker = Asker()
    assert asker.transport.written.startswith(b"GET / HTTP/1.1\r\n")
    assert asker.pool.take("http://a:1") is None
    asker.link.data_received(HEAD[:-4])
    assert asker.told == []
    asker.link.data_received(HEAD[-4:])
    answer = asker.answer
    assert (answer.status, answer.is_ready, answer.arrived()) == (200, False, None)
    asker.link.data_received(b"abcd")
    assert (answer.is_ready, answer.arrived()) == (True, b"abcd")
    assert [answer.close() for _ in range(2)] == [OVER, OVER]
    assert (answer.is_ready, answer.arrived()) == (True, None)
    assert asker.pool.take("http://a:1") is asker.link


async def test_an_answer_closed_before_its_end_takes_its_connection_with_it() -> None:
    asker = Asker()
    asker.link.data_received(HEAD + b"ab")
    asker.answer.close()
    assert asker.transport.is_aborted


@pytest.mark.parametrize(("came", "told"), [(b"", None), (b"HTTP/1.1 ", UpstreamCut)])
async def test_a_connection_that_ends_is_told_by_what_had_come(came: bytes, told: type | None) -> None:
    asker = Asker()
    if came:
        asker.link.data_received(came)
    asker.link.connection_lost(None)
    (failure,) = asker.told
    assert failure is None if told is None else isinstance(failure, told)


async def test_what_is_dropped_is_told_to_nobody() -> None:
    asker = Asker()
    asker.asked.drop()
    asker.link.connection_lost(None)
    assert asker.told == []
    assert asker.transport.is_aborted


async def test_without_a_connection_nothing_is_asked_and_what_cannot_be_sent_takes_none() -> None:
    heard: list[object] = []
    assert Asking(Pool()).ask(REQUEST, heard.append) is None
    (link, transport), pool = opened(), Pool()
    pool.give(link)
    with pytest.raises(UpstreamUnreachable):
        Asking(pool).ask(UpstreamRequest("GET", "http://a:1", "/a b", ()), heard.append)
    assert not transport.is_aborted
    assert pool.take("http://a:1") is link


async def test_a_connection_that_takes_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_transport: FakeTransport, _piece: bytes) -> None:
        raise TypeError

    (link, transport), pool = opened(), Pool()
    pool.give(link)
    heard: list[object] = []
    monkeypatch.setattr(FakeTransport, "write", refuse)
    with pytest.raises(TypeError):
        Asking(pool).ask(REQUEST, heard.append)
    assert transport.is_aborted

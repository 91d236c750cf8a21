import gzip
import zlib

import pytest

from kinference.errors import UpstreamCut
from kinference.gateway.beginning import CHUNKS_MAX, HELD_MAX, Beginning, Overture
from kinference.ports import Headers
from kinference.vocabulary import Api
from tests.unit.gateway.fakes import EVENTS, JSON

PLAIN = b"data: hi\n\n"
GZIPPED: Headers = (*EVENTS, (b"content-encoding", b"gzip"), (b"content-length", b"9"))


def test_a_plain_beginning_is_held_as_it_comes_and_over_with_its_first_bytes() -> None:
    beginning = Beginning(EVENTS, is_read=False)
    assert (beginning.is_stream, beginning.is_over()) == (True, False)
    assert beginning.hold(b"") == [b""]
    assert not beginning.is_over()
    assert beginning.hold(PLAIN) == [PLAIN]
    assert (list(beginning.held), beginning.is_over()) == ([b"", PLAIN], True)


@pytest.mark.parametrize("packed", [gzip.compress(PLAIN), zlib.compress(PLAIN)], ids=["gzip", "zlib"])
def test_what_is_to_be_read_comes_out_plain_and_its_head_says_so(packed: bytes) -> None:
    beginning = Beginning(GZIPPED, is_read=True)
    pieces = [piece for byte in packed for piece in beginning.hold(bytes((byte,)))]
    assert b"".join(pieces) == b"".join(beginning.held) == PLAIN
    assert (beginning.headers, beginning.is_over()) == (list(EVENTS), False)


def test_what_is_passed_on_stays_as_its_head_says() -> None:
    beginning, packed = Beginning(GZIPPED, is_read=False), gzip.compress(PLAIN)
    assert beginning.hold(packed) == [packed]
    assert beginning.headers == GZIPPED


def test_gzip_that_the_head_says_nothing_of_is_seen_by_its_mark() -> None:
    beginning = Beginning((*JSON, (b"content-length", b"9")), is_read=False)
    assert beginning.hold(gzip.compress(PLAIN)) == [PLAIN]
    assert beginning.headers == list(JSON)


def test_a_coding_that_cannot_be_read_is_a_broken_answer() -> None:
    with pytest.raises(UpstreamCut, match="nobody asked for"):
        Beginning((*JSON, (b"content-encoding", b"br")), is_read=True)
    with pytest.raises(UpstreamCut, match="cannot be read"):
        Beginning(GZIPPED, is_read=True).hold(b"\x1fno gzip at all")


def test_a_page_is_told_from_json_by_how_it_begins() -> None:
    def begun(chunk: bytes, *head: tuple[bytes, bytes]) -> Beginning:
        beginning = Beginning(head, is_read=False)
        beginning.hold(chunk)
        return beginning

    assert begun(b" {}").could_be_json()
    assert begun(gzip.compress(b"{}")).could_be_json()
    assert begun(b"<p>", (b"content-encoding", b"br")).could_be_json()
    assert not begun(b"<p>").could_be_json()
    assert not begun(gzip.compress(b"<p>")).could_be_json()


ROLE = b'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n'
WORD = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'


@pytest.mark.parametrize("size", [7, 1000])
def test_an_overture_is_over_with_the_first_event_that_says_something(size: int) -> None:
    overture, said = Overture(Api.OPENAI_CHAT), b": hi\n\n" + ROLE + WORD + ROLE
    for begin in range(0, len(said) - len(ROLE), size):
        assert not overture.is_over
        overture.take(size, [said[begin : begin + size]])
    assert overture.first is not None
    assert (overture.first.data, overture.is_over, overture.failure) == (WORD[6:-2], True, None)


def test_an_overture_in_very_many_pieces_is_not_waited_for() -> None:
    overture = Overture(Api.OPENAI_CHAT)
    for _ in range(CHUNKS_MAX):
        assert not overture.is_over
        overture.take(1, [b":"])
    assert (overture.first, overture.is_over, overture.failure) == (None, True, None)


def test_an_overture_is_not_held_for_ever() -> None:
    overture = Overture(Api.OPENAI_CHAT)
    overture.take(HELD_MAX, [b": hi\n\n"])
    assert (overture.first, overture.is_over, overture.failure) == (None, True, None)


@pytest.mark.parametrize(("tail", "is_one"), [(WORD[:-1], True), (ROLE[:-1], False), (b"", False)])
def test_a_stream_that_ends_has_said_something_or_is_none(tail: bytes, *, is_one: bool) -> None:
    overture = Overture(Api.OPENAI_CHAT)
    overture.take(len(tail), [tail])
    overture.end()
    assert (overture.first is not None, overture.failure is None, overture.is_over) == (is_one, is_one, True)


def test_an_event_without_end_is_no_stream() -> None:
    overture = Overture(Api.OPENAI_CHAT)
    overture.take(9, [b"data: " + b"y" * (17 << 20)])
    assert overture.failure is not None

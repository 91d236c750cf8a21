import gzip
import zlib

import pytest

from kinference.errors import UpstreamCut
from kinference.gateway.beginning import Beginning
from kinference.ports import Headers
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

from functools import partial

import pytest

from kinference.fleet.discovery.kubernetes.objects import read_pod
from kinference.fleet.discovery.kubernetes.watched import (
    LINE_BYTES_MAX,
    OBJECTS_MAX,
    Expired,
    Lines,
    Senseless,
    Watched,
    listed_in,
)
from tests.unit.fleet.discovery.kubernetes.cluster_objects import addresses, bookmark, event, failure, listed, pod


@pytest.fixture
def watched() -> Watched:
    made = Watched(partial(read_pod, ports=(80,)))
    made.replace([listed(pod("a"), more="x"), listed(pod("b", "10.0.0.2"))])
    return made


def test_a_list_is_all_there_is(watched: Watched) -> None:
    assert (addresses(watched.places), watched.version) == (["10.0.0.1:80", "10.0.0.2:80"], "9")
    watched.replace([listed(version="12")])
    assert (watched.places, watched.version) == ((), "12")


def test_what_happens_is_followed(watched: Watched) -> None:
    watched.happened(event("ADDED", pod("c", "10.0.0.3", version="10")))
    watched.happened(event("MODIFIED", pod("a", "10.0.0.9", version="11")))
    watched.happened(event("DELETED", pod("b", version="12")))
    assert (addresses(watched.places), watched.version) == (["10.0.0.9:80", "10.0.0.3:80"], "12")


def test_a_bookmark_only_moves_the_version(watched: Watched) -> None:
    before = watched.places
    watched.happened(bookmark("99"))
    assert (watched.places, watched.version) == (before, "99")


def test_what_changes_no_place_is_the_very_same_set(watched: Watched) -> None:
    before = watched.places
    watched.happened(event("MODIFIED", pod("a", version="10")))
    watched.happened(bookmark("11"))
    assert watched.places is before
    watched.happened(event("MODIFIED", pod("a", ready=False, version="12")))
    assert watched.places != before


def test_a_version_that_is_too_old_is_given_up_and_the_objects_are_not(watched: Watched) -> None:
    before = watched.places
    with pytest.raises(Expired):
        watched.happened(failure(410))
    assert (watched.places, watched.version) == (before, "")


@pytest.mark.parametrize(
    "line",
    [
        b'{"type": "ADDED", "object": ' + b"[" * 100_000,
        b"{}",
        b"[]",
        b"not json",
        b"\xff",
        failure(500),
        event("CONJURED", pod()),
        event("ADDED", {"metadata": 1}),
    ],
)
def test_what_makes_no_sense_is_no_event(watched: Watched, line: bytes) -> None:
    with pytest.raises(Senseless):
        watched.happened(line)


def test_a_page_that_makes_no_sense_changes_nothing(watched: Watched) -> None:
    before = watched.places
    for page in (b"", b"[]", b'{"items": [1]}'):
        with pytest.raises(Senseless):
            watched.replace([page])
    assert (watched.places, watched.version) == (before, "9")


def test_a_list_may_have_no_items() -> None:
    assert listed_in(b'{"metadata": {"resourceVersion": "3"}, "items": null}').items is None


def test_objects_are_bounded_in_number(watched: Watched) -> None:
    many = [pod(f"p{n}") for n in range(OBJECTS_MAX + 1)]
    with pytest.raises(Senseless, match=f"over {OBJECTS_MAX} objects"):
        watched.replace([listed(*many)])
    watched.replace([listed(*many[1:])])
    with pytest.raises(Senseless, match=f"over {OBJECTS_MAX} objects"):
        watched.happened(event("ADDED", pod("one-more")))


def test_lines_are_whole_however_they_come() -> None:
    lines = Lines()
    assert lines.feed(b"") == []
    assert lines.feed(b"ab") == []
    assert lines.feed(b"c\nd\n\n\ne") == [b"abc", b"d"]
    assert lines.feed(b"\n") == [b"e"]


def test_a_line_without_end_is_given_up() -> None:
    with pytest.raises(Senseless, match="over"):
        Lines().feed(b"x" * (LINE_BYTES_MAX + 1))

from pathlib import Path

import pytest

from kinference.errors import KinferenceError, UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from kinference.fleet.discovery.kubernetes.api import PAGE_BYTES_MAX, WATCH_FOR
from kinference.fleet.discovery.kubernetes.watched import Expired
from kinference.fleet.discovery.source import SourceFailed
from tests.unit.fleet.discovery.kubernetes.fakes import FakeApi, Reply, api_of

PATH = "/api/v1/namespaces/models/pods"


async def test_a_page_is_asked_for_with_the_token_as_it_is_now(tmp_path: Path) -> None:
    token = tmp_path / "token"
    upstream = FakeApi([Reply([b"a", b"b"]), Reply()])
    api = api_of(upstream, token)
    for text in ("first", "second"):
        token.write_text(f"{text}\n")
        await api.page(PATH)
    assert [dict(one.headers)[b"authorization"] for one in upstream.asked] == [b"Bearer first", b"Bearer second"]


async def test_a_watch_tells_that_it_has_begun_and_then_what_comes() -> None:
    reply = Reply([b"a", b"b"])
    upstream = FakeApi([reply])
    assert [chunk async for chunk in api_of(upstream).watch(PATH)] == [b"", b"a", b"b"]
    assert reply.is_closed
    assert upstream.asked[0].timeouts.between_chunks > WATCH_FOR


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (401, "may not read /api/v1/namespaces/models/pods .HTTP 401.; bind it a role"),
        (403, "may not read .* bind it a role with get, list and watch"),
        (404, "there is no /api/v1/namespaces/models/pods; is its name right"),
        (500, "answered 500"),
    ],
)
async def test_a_refusal_says_what_to_do(status: int, why: str) -> None:
    reply = Reply(status=status)
    with pytest.raises(SourceFailed, match=why):
        await api_of(FakeApi([reply])).page(f"{PATH}?labelSelector=secret")
    assert reply.is_closed


async def test_a_version_that_is_too_old_is_said_so() -> None:
    with pytest.raises(Expired):
        await api_of(FakeApi([Reply(status=410)])).page(PATH)


@pytest.mark.parametrize("error", [UpstreamUnreachable("refused"), UpstreamTimeout("silent"), UpstreamCut("cut")])
@pytest.mark.parametrize("is_late", [False, True])
async def test_an_api_that_is_away_has_failed(error: KinferenceError, is_late: bool) -> None:
    upstream = FakeApi([Reply([b"a", error]) if is_late else error])
    with pytest.raises(SourceFailed, match=f"the Kubernetes API: {error}"):
        await api_of(upstream).page(PATH)


async def test_a_page_is_bounded() -> None:
    reply = Reply([b"x" * PAGE_BYTES_MAX, b"x"])
    with pytest.raises(SourceFailed, match="over"):
        await api_of(FakeApi([reply])).page(PATH)
    assert reply.is_closed


async def test_a_token_that_cannot_be_read_is_said_and_not_shown(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match="no token of a service account can be read: FileNotFoundError"):
        await api_of(FakeApi([]), tmp_path / "absent").page(PATH)

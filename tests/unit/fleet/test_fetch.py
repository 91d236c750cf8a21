import pytest

from kinference.core.fleet import EndpointSpec
from kinference.errors import BudgetExceeded, UpstreamTimeout
from kinference.fleet.fetch import FETCH_FAULTS, Page, PageLimits, fetch, post
from kinference.ids import Address
from tests.unit.fleet.fakes import POOL, FakeAnswer, FakeUpstream, spec

LIMITS = PageLimits(timeout=5.0, bytes_max=100)


async def test_a_page_is_read_to_its_end_and_its_answer_closed() -> None:
    answer = FakeAnswer(203, b"half", repeats=2)
    upstream = FakeUpstream({"http://10.0.0.1:8000/p": answer})
    assert await fetch(upstream, spec(), "/p", LIMITS) == Page(203, b"halfhalf")
    assert answer.closed == 1


async def test_scheme_address_and_prefix_come_from_the_endpoint() -> None:
    upstream = FakeUpstream({"https://[fd00::1]:8000/engine/p": FakeAnswer(200)})
    await fetch(upstream, EndpointSpec(POOL, Address("[fd00::1]:8000"), "https", "/engine"), "/p", LIMITS)
    (request,) = upstream.requests
    assert (request.method, request.origin, request.target) == ("GET", "https://[fd00::1]:8000", "/engine/p")


async def test_a_page_of_exactly_the_limit_is_fine() -> None:
    upstream = FakeUpstream({"http://10.0.0.1:8000/p": FakeAnswer(200, b"x" * 50, repeats=2)})
    assert len((await fetch(upstream, spec(), "/p", LIMITS)).body) == 100


async def test_an_endless_page_is_given_up_at_the_limit_and_closed() -> None:
    answer = FakeAnswer(200, b"x" * 10, repeats=10**9)
    with pytest.raises(BudgetExceeded, match=r"^http://10\.0\.0\.1:8000/p is over 100 bytes$"):
        await fetch(FakeUpstream({"http://10.0.0.1:8000/p": answer}), spec(), "/p", LIMITS)
    assert answer.closed == 1


async def test_a_page_that_hangs_is_given_up() -> None:
    upstream = FakeUpstream({"http://10.0.0.1:8000/p": None})
    with pytest.raises(UpstreamTimeout, match=r"took longer than 0\.01 s$"):
        await fetch(upstream, spec(), "/p", PageLimits(0.01, 100))


async def test_an_unreachable_engine_raises_a_fetch_fault() -> None:
    with pytest.raises(FETCH_FAULTS, match="unreachable"):
        await fetch(FakeUpstream(), spec(), "/p", LIMITS)


async def test_json_is_posted_to_the_endpoint_and_the_answer_read() -> None:
    upstream = FakeUpstream({"http://10.0.0.1:8000/p": FakeAnswer(200, b"yes")})
    assert await post(upstream, spec(), "/p", b"{}", LIMITS) == Page(200, b"yes")
    (request,) = upstream.requests
    assert (request.method, request.target, list(request.body)) == ("POST", "/p", [b"{}"])
    assert (b"content-type", b"application/json") in request.headers

"""Which web pages may ask a port that asks nobody for a credential."""

import pytest

from kinference.ports import Headers
from kinference.wire.access import Denied
from kinference.wire.strangers import OwnNames, is_of_a_strange_page, refuse_other_names, refuse_pages

NAMES = OwnNames(["Router.example."])


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:9090",
        "127.9.9.9:1",
        "[::1]:9090",
        "localhost",
        "LOCALHOST:9090",
        "localhost.:9090",
        "demo.localhost:9090",
        "router.example:9090",
        "router.example.",
    ],
)
def test_this_machines_own_names_and_those_it_was_told_are_ours(host: str) -> None:
    assert NAMES.include(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        ":9090",
        "evil.test",
        "evil.test:9090",
        "127.0.0.1.evil.test",
        "localhost.evil.test",
        "notlocalhost",
        "evil.test@127.0.0.1.evil.test",
        "sub.router.example",
        "10.0.0.7:9090",
        "0.0.0.0:9090",
        "[::1",
        "[::ffff:10.0.0.7]:9090",
        "0x7f.1",
    ],
)
def test_no_other_name_is_ours(host: str) -> None:
    assert not NAMES.include(host)


def test_a_request_to_another_name_is_refused_and_one_without_a_name_is_no_browsers() -> None:
    with pytest.raises(Denied, match=r"listen\.names"):
        refuse_other_names([(b"host", b"evil.test:9090")], NAMES)
    refuse_other_names([(b"host", b"127.0.0.1:9090")], NAMES)
    refuse_other_names([], NAMES)


@pytest.mark.parametrize(
    "headers",
    [
        ((b"origin", b"https://evil.test"),),
        ((b"origin", b"null"),),
        ((b"origin", b"http://["), (b"host", b"127.0.0.1:9090")),
        ((b"origin", b"http://127.0.0.1:9090"), (b"host", b"[::1")),
        ((b"origin", b"http://127.0.0.1:9090"),),
        ((b"origin", b"https://evil.test"), (b"host", b"10.0.0.7:9090")),
        ((b"origin", b"http://localhost:9090"), (b"host", b"evil.test:9090")),
        ((b"origin", b"http://evil.test"), (b"host", b"evil.test:9090")),
    ],
)
def test_a_web_page_from_elsewhere_is_refused_with_a_credential_too(headers: Headers) -> None:
    with pytest.raises(Denied, match="web pages"):
        refuse_pages(headers, NAMES, "alice")


def test_our_own_page_under_another_name_may_with_a_credential_alone() -> None:
    headers = ((b"origin", b"https://Other.test:9090"), (b"host", b"other.test:9090"))
    refuse_pages(headers, NAMES, "alice")
    with pytest.raises(Denied, match="web pages"):
        refuse_pages(headers, NAMES, "")


@pytest.mark.parametrize("name", [b"127.0.0.1:9090", b"router.example:9090"])
def test_our_own_page_may(name: bytes) -> None:
    refuse_pages([(b"origin", b"http://" + name), (b"host", name)], NAMES, "")


@pytest.mark.parametrize(
    ("origin", "is_strange"),
    [
        (b"http://evil.test:8080", True),
        (b"https://evil.test", True),
        (b"HTTPS://EVIL.test", True),
        (b"null", True),
        (b"", True),
        (b"http://[", True),
        (b"http://localhost:3000", False),
        (b"http://router.example", False),
        (b"app://chat", False),
        (b"chrome-extension://abcdef", False),
    ],
)
def test_the_origin_tells_whose_page_it_is(origin: bytes, is_strange: bool) -> None:
    assert is_of_a_strange_page("POST", [(b"origin", origin)], NAMES) is is_strange


@pytest.mark.parametrize(
    ("method", "host", "is_strange"),
    [
        ("POST", b"evil.test", False),
        ("DELETE", b"evil.test", False),
        ("GET", b"evil.test:8080", True),
        ("HEAD", b"evil.test:8080", True),
        ("GET", b"127.0.0.1:8080", False),
        ("GET", b"router.example", False),
    ],
)
def test_without_an_origin_the_name_tells_where_browsers_send_none(method: str, host: bytes, is_strange: bool) -> None:
    assert is_of_a_strange_page(method, [(b"host", host)], NAMES) is is_strange


def test_what_has_neither_origin_nor_host_is_no_browsers() -> None:
    assert not is_of_a_strange_page("GET", [], NAMES)

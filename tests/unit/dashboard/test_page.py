"""The page of the admin port."""

import re

import pytest

from kinference.dashboard.page import KINDS, Page
from tests.unit.dashboard.asked import AskedExchange

PATHS = ("/", *(f"/{name}" for name in KINDS))


async def get(path: str) -> AskedExchange:
    exchange = AskedExchange("GET", path, b"", ())
    await Page().handle(exchange)
    return exchange


@pytest.mark.parametrize("path", PATHS)
async def test_nothing_is_loaded_from_elsewhere_and_nothing_stands_in_line(path: str) -> None:
    text = (await get(path)).sent.decode()
    assert "//" not in re.sub(r"^//.*$", "", text, flags=re.MULTILINE)
    assert not re.search(r"<script>|<style>|\son\w+=|innerHTML|insertAdjacentHTML|document\.write|eval\(", text)


@pytest.mark.parametrize("path", PATHS)
async def test_the_browser_is_told_to_allow_no_more(path: str) -> None:
    exchange = await get(path)
    assert exchange.status == 200
    policy = exchange.answer_headers[b"content-security-policy"]
    assert b"default-src 'none'" in policy
    assert b"frame-ancestors 'none'" in policy
    assert b"unsafe" not in policy
    assert exchange.answer_headers[b"x-content-type-options"] == b"nosniff"


async def test_the_page_has_a_place_for_each_of_its_sections_and_asks_for_what_there_is() -> None:
    html, script = [(await get(path)).sent.decode() for path in ("/", "/page.js")]
    named = re.search(r"const SECTIONS = \{ (.*) \};", script)
    assert named
    sections = named[1].split(", ")
    assert sections == ["waiting", "endpoints", "discovery", "tenants", "decisions"]
    assert all(f'<div id="{name}">' in html for name in sections)


def test_other_paths_are_not_its_own() -> None:
    assert [Page().serves(path) for path in ("/", "/page.js", "/page.py", "/static/page.js", "/../page.js")] == [
        True,
        True,
        False,
        False,
        False,
    ]

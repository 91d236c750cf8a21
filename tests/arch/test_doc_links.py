"""Every link between our own pages leads somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.arch.source import ROOT, report

LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")


def pages() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")]


def anchors(page: Path) -> set[str]:
    """As a forge makes them of headings: lower case, hyphens for spaces, without other punctuation."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken(page: Path) -> Iterator[str]:
    name = page.name
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    for path, anchor in LINK.findall(text):
        target = (page.parent / path) if path else page
        if not target.exists():
            yield f"{name}: nothing is at {path}"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{name}: {path or name} has no heading {anchor}"


def test_no_link_is_broken() -> None:
    findings = [finding for page in pages() for finding in broken(page)]
    assert not findings, report(findings)


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Some `Head`ing\n[a](gone.md) [b](#no-heading) [c](#some-heading) [d](page.md) [e](https://x/y)\n"
    )
    assert list(broken(page)) == ["page.md: nothing is at gone.md", "page.md: page.md has no heading no-heading"]

"""No file names a machine, a registry or half of a merge."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.arch.source import ROOT, report

# Written in pieces, so that this file does not find itself.
PLACES = (
    "/" + "home/",
    "/" + "root/",
    "/" + "Users/",
    "/" + "work/",
    "/" + "tmp/",
    "/" + "private/var/",
    "C:" + "\\Users",
)
REGISTRIES = (
    "pypi" + ".org",
    "pythonhosted" + ".org",
    "proxy.golang" + ".org",
    "registry.npmjs" + ".org",
    "crates" + ".io",
)
MERGE = re.compile(r"^(<{7} |>{7} |\|{7} )", re.MULTILINE)
LEFTOVERS = {".orig", ".rej", ".bak", ".swp"}


def ignored_names() -> set[str]:
    entries = (ROOT / ".gitignore").read_text().split()
    return {entry.rstrip("/") for entry in entries} | {".git"}


def files(folder: Path, ignored: set[str]) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in ignored or any(path.match(pattern) for pattern in ignored):
            continue
        if path.is_dir():
            yield from files(path, ignored)
        else:
            yield path


def blemishes(name: str, text: str) -> Iterator[str]:
    if Path(name).suffix in LEFTOVERS:
        yield f"{name}: left behind by a tool; delete it"
    for place in PLACES:
        if re.search(rf"(?<![\w.}}]){re.escape(place)}", text):
            yield f"{name}: names `{place}`, a place on somebody's machine; make it relative, or use a temporary folder"
    for registry in REGISTRIES:
        if registry in text:
            yield f"{name}: names the registry {registry}; leave that to the installer's own settings"
    if MERGE.search(text):
        yield f"{name}: has a conflict marker; finish the merge"


def test_no_file_has_a_blemish() -> None:
    findings: list[str] = []
    for path in files(ROOT, ignored_names()):
        findings += blemishes(path.relative_to(ROOT).as_posix(), path.read_text(errors="replace"))
    assert not findings, report(findings)


@pytest.mark.parametrize(
    "text", ["cd /" + "home/me/code", "at '/" + "tmp/x'", "https://pypi" + ".org/simple", "<" * 7 + " HEAD"]
)
def test_a_blemish_is_found(text: str) -> None:
    assert len(list(blemishes("docs/page.md", text))) == 1


def test_a_leftover_is_found() -> None:
    assert len(list(blemishes("src/pick.py.orig", ""))) == 1


def test_a_plain_text_passes() -> None:
    assert list(blemishes("README.md", "see tests/home/page and https://example.com/home/ ====")) == []

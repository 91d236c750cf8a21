"""The core and the shapes are told the time and given their randomness; they wait for nothing."""

from collections.abc import Iterator

import pytest

from tests.arch.source import Module, imports, parsed, report, source_modules

PURE = ("core/", "shapes/")
STANDARD = {
    *("array", "base64", "bisect", "codecs", "collections", "contextlib", "copy", "dataclasses", "datetime", "decimal"),
    *("enum", "fnmatch", "functools", "hashlib", "heapq", "itertools", "json", "math", "operator", "random", "re"),
    *("statistics", "string", "struct", "types", "typing", "unicodedata", "abc", "binascii", "fractions", "textwrap"),
    *("difflib", "numbers", "html", "urllib"),
}
LIBRARIES = {"msgspec", "xxhash"}
IMPURE_NAMES = {
    "datetime.datetime": "it can ask for the time; take seconds as an argument",
    "urllib.request": "it opens connections",
    "contextlib.AsyncExitStack": "nothing here waits",
    "contextlib.asynccontextmanager": "nothing here waits",
}


def impurities(module: Module) -> Iterator[str]:
    for node, name in imports(module.tree):
        top = name.split(".")[0]
        if top == "random" and name != "random.Random":
            yield module.at(node, "only `from random import Random` for the type; the generator itself is passed in")
        elif name in IMPURE_NAMES:
            yield module.at(node, f"{name}: {IMPURE_NAMES[name]}")
        elif top != "kinference" and top not in STANDARD | LIBRARIES:
            yield module.at(
                node,
                f"{top} is not among what pure code may import; take its result as an argument, or do this one level up",
            )
    for number, line in enumerate(module.text.splitlines(), start=1):
        if line.lstrip().startswith(("async def ", "await ")):
            yield f"{module.path}:{number}: async in pure code; decide here, wait in the shell around it"


def test_the_core_and_the_shapes_are_pure() -> None:
    pure = [module for module in source_modules() if module.path.startswith(PURE)]
    assert pure
    findings = [finding for module in pure for finding in impurities(module)]
    assert not findings, report(findings)


@pytest.mark.parametrize(
    "line",
    [
        "import asyncio",
        "import time",
        "from time import monotonic",
        "import logging",
        "import os",
        "import uuid",
        "import socket",
        "import random",
        "from random import choice",
        "import grpc",
        "from datetime import datetime",
        "async def decide(): ...",
    ],
)
def test_an_impurity_is_found(line: str) -> None:
    assert len(list(impurities(parsed(line)))) == 1


@pytest.mark.parametrize("line", ["from random import Random", "import msgspec", "from kinference.ids import Seconds"])
def test_what_is_pure_passes(line: str) -> None:
    assert list(impurities(parsed(line))) == []

"""The inputs that are kept, and a bounded number of mutations of them; `run.py` looks further."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
MUTATIONS = 40


def mutated(data: bytes, random: Random) -> Iterator[bytes]:
    for _ in range(MUTATIONS):
        changed = bytearray(data)
        for _ in range(random.randint(1, 4)):
            at = random.randrange(len(changed) + 1)
            changed[at : at + random.randint(0, 3)] = random.randbytes(random.randint(0, 3))
        yield bytes(changed)


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_each_target_has_a_corpus(name: str) -> None:
    assert list((CORPUS / name).iterdir())


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_kept_inputs_and_what_is_close_to_them_break_nothing(path: Path) -> None:
    target, data = TARGETS[path.parent.name], path.read_bytes()
    target(data)
    for changed in mutated(data, Random(path.name)):
        target(changed)

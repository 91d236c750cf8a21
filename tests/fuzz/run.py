"""Fuzzes one target, guided by coverage, from the corpus: `.venv/bin/python tests/fuzz/run.py http2 --seconds 300`.

Ends with an error at the first input that breaks its target, and leaves that input in a file `crash-...`. Each input is
in the file `last-<target>` while it is tried, so that none is lost, whatever ends the process.
"""

import argparse
import sys
from collections.abc import Callable
from hashlib import sha256
from io import FileIO
from pathlib import Path
from tempfile import TemporaryDirectory

import atheris  # type: ignore[import-untyped] # ships no types

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
with atheris.instrument_imports(include=["kinference.wire", "kinference.shapes", "hpack"]):
    from tests.fuzz.targets import TARGETS

CORPUS = ROOT / "tests/fuzz/corpus"
INPUT_BYTES_MAX = 4096
INPUT_S_MAX = 60
"""On the clock, so that a machine with much else to do is not taken for a hang."""


def kept(target: Callable[[bytes], None], last: FileIO) -> Callable[[bytes], None]:
    """A target that keeps what it is tried with: libFuzzer does not always write what made it end."""

    def try_input(data: bytes) -> None:
        last.seek(0)
        last.write(data)
        last.truncate()
        try:
            target(data)
        except BaseException:
            path = Path(f"crash-{sha256(data).hexdigest()[:16]}")
            path.write_bytes(data)
            sys.stderr.write(f"the input is in {path}\n")
            raise

    return try_input


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()

    with Path(f"last-{options.target}").open("wb", buffering=0) as last, TemporaryDirectory() as found:
        target = kept(TARGETS[options.target], last)
        flags = [f"-max_total_time={options.seconds}", f"-timeout={INPUT_S_MAX}", f"-max_len={INPUT_BYTES_MAX}"]
        atheris.Setup([sys.argv[0], *flags, "-print_final_stats=1", found, str(CORPUS / options.target)], target)
        atheris.Fuzz()


if __name__ == "__main__":
    main()

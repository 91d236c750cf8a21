"""Fuzzes one target, guided by coverage, from the corpus: `.venv/bin/python tests/fuzz/run.py http2 --seconds 300`.

Ends with an error, and leaves the input in a file `crash-...`, at the first one that breaks its target.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import atheris  # type: ignore[import-untyped] # ships no types

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
with atheris.instrument_imports(include=["kinference.wire", "hpack"]):
    from tests.fuzz.targets import TARGETS

CORPUS = ROOT / "tests/fuzz/corpus"
INPUT_BYTES_MAX = 4096
INPUT_S_MAX = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    with TemporaryDirectory() as found:  # what the run adds to the corpus is its own
        flags = [f"-max_total_time={options.seconds}", f"-timeout={INPUT_S_MAX}", f"-max_len={INPUT_BYTES_MAX}"]
        atheris.Setup(
            [sys.argv[0], *flags, "-print_final_stats=1", found, str(CORPUS / options.target)], TARGETS[options.target]
        )
        atheris.Fuzz()


if __name__ == "__main__":
    main()

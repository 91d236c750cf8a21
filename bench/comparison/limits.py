"""Where the CPU time of a request goes, of ours and of the others: shares by `perf`, times what a request costs.

    .venv/bin/python bench/comparison/limits.py --rivals .bench --seconds 5

Each router has one core, the engine and the load the other, as in `run.py`; perf samples the router's process tree. A
sample belongs to the library in whose code it was taken. The kernel's are parted in two: what it takes to wake those
that wait for what was written, which a router pays at each write for as long as it is slower than its peers, and
all else.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from routers import Running, builds, rivals, running, tree  # type: ignore[import-not-found] # noqa: E402 - a script beside this one
from run import LOADS, Asker, Load, compiled, engine, one_round  # type: ignore[import-not-found] # noqa: E402 - as above

WAKING = frozenset({"_raw_spin_unlock_irqrestore", "finish_task_switch.isra.0", "finish_task_switch", "try_to_wake_up"})
"""Where a virtual machine's kernel is when it has told another core that there is something to do."""
INTERPRETER = "interpreter: bytecodes, look-ups, calls, objects"
PIECES = (
    ("kinference__mypyc", "our compiled code"),
    ("libpython", INTERPRETER),
    ("python", INTERPRETER),
    ("uvloop", "uvloop"),
    ("httptools", "llhttp"),
    ("msgspec", "msgspec: JSON, structs"),
    ("_xxhash", "xxh3"),
    ("libc.", "C library: copies, allocation"),
)
"""By how the name of an installed package's file begins, or that of a library."""


def shares(data: Path) -> Counter[str]:
    """Of the samples, by what was running."""
    command = ["perf", "script", "-i", str(data), "-F", "ip,sym,dso"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Counter(piece_of(line) for line in told.splitlines() if line.strip())


def piece_of(line: str) -> str:
    """The piece to which a line of `ADDRESS SYMBOL (LIBRARY)` belongs."""
    symbol, _, library = line.strip().partition(" ")[2].rpartition(" (")
    if library.startswith(("[kernel", "[guest")):
        return "kernel: waking readers" if symbol in WAKING else "kernel: all else"
    _, is_installed, package = library.rpartition("/site-packages/")
    name = package if is_installed else library.rpartition("/")[2]
    return next((piece for begin, piece in PIECES if name.startswith(begin)), "its own code and the rest")


def profile(asker: Asker, one: Running, load: Load, seconds: float, folder: Path) -> tuple[float, Counter[str]]:
    """Microseconds of CPU a request, and the shares."""
    one_round(asker, one, load, 1.0)
    data = folder / "perf.data"
    pids = ",".join(map(str, tree(one.pid)))
    command = ["perf", "record", "-q", "-F", "1999", "-p", pids, "-o", str(data), "--", "sleep", str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        cost = 1e6 / one_round(asker, one, load, seconds + 0.5)["per_cpu_s"]
    return cost, shares(data)


def rows(name: str, cost: float, found: Counter[str]) -> Iterator[str]:
    total = sum(found.values())
    yield f"\n{name}: {cost:,.0f} us of CPU a request, {total:,} samples"
    for piece, count in found.most_common():
        yield f"  {cost * count / total:7.1f} us {count / total:6.1%}  {piece}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rivals", type=Path, help="the folder of install.sh; without it, only what is there anyway")
    parser.add_argument("--load", choices=[load.name for load in LOADS], default=LOADS[0].name)
    parser.add_argument("--only", help="of the routers, those with this in their name")
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    load = next(load for load in LOADS if load.name == options.load)
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        wire = compiled(folder)
        port = stack.enter_context(engine(wire, cores[0]))
        asker = Asker(wire, folder, cores[0], port)
        for router in (*builds(), *(rivals(options.rivals.resolve()) if options.rivals else ())):
            if not router.is_slow and (not options.only or options.only in router.name):
                with running(router, port, folder, cores[-1]) as one:
                    print("\n".join(rows(router.name, *profile(asker, one, load, options.seconds, folder))), flush=True)


if __name__ == "__main__":
    main()

"""What a request costs the gateway, piece by piece: a sampling profile of the serving process under load.

The process samples its own stack by CPU time. A sample belongs to the innermost function of ours that is on it, and so
to its package; what the event loop and the system calls do belongs to the loop.

    .venv/bin/python bench/pieces.py --seconds 5
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType

import uvloop
from gateway import LOADS, Load, cpu_seconds, engine, measure, stop, wait_for  # type: ignore[import-not-found] # the script beside this one

from kinference.cli.main import main as kinference

EVERY_S = 0.002
PIECES = {
    "core": "decision, and learning from reports",
    "picker": "picker: places, tickets, history",
    "shapes": "reading the body and the answer",
    "gateway": "gateway: route, destination, relay, accounts",
    "wire": "HTTP on both sides",
    "observe": "metrics",
    "runtime": "clock, directory",
    "fleet": "directory of the fleet",
    "": "event loop, library code, system calls",
}


def piece(frame: FrameType | None) -> str:
    """The package of the innermost function of ours."""
    while frame is not None:
        _, found, path = frame.f_code.co_filename.rpartition("/kinference/")
        if found and (name := path.partition("/")[0]) not in ("cli", "__main__.py"):
            return "" if frame.f_code.co_name in ("serve", "run") else name
        frame = frame.f_back
    return ""


def serve(told: Path, arguments: list[str]) -> None:
    """`kinference serve`, which tells in the end where its samples fell."""
    samples: Counter[str] = Counter()

    signal.signal(signal.SIGPROF, lambda _signal, frame: samples.update((piece(frame),)))

    def begin(*_: object) -> None:
        samples.clear()
        signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)

    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, lambda *_: told.write_text(json.dumps(samples)))
    kinference(["serve", "--log-level", "warning", *arguments])


async def profile(load: Load, connections: int, seconds: float) -> None:
    """One table."""
    async with engine() as engine_port:
        with tempfile.TemporaryDirectory() as folder:
            ports, told = Path(folder, "ports.json"), Path(folder, "samples.json")
            listen = {f"KINFERENCE_LISTEN_{plane}": "127.0.0.1:0" for plane in ("PICKER", "GATEWAY", "ADMIN")}
            command = [sys.executable, __file__, "--serve", str(told), "--ports-file", str(ports)]
            command += ["--engine", f"http://127.0.0.1:{engine_port}"]
            process = subprocess.Popen(command, env=os.environ | listen, stdout=subprocess.DEVNULL)
            try:
                port = json.loads(await wait_for(ports, process))["gateway"]
                await measure(port, load, connections, 1.0)
                process.send_signal(signal.SIGUSR1)
                before = cpu_seconds(process.pid)
                served = len(await measure(port, load, connections, seconds))
                cost = (cpu_seconds(process.pid) - before) / served * 1e6
                process.send_signal(signal.SIGUSR2)
                samples = json.loads(await wait_for(told, process))
            finally:
                stop(process)
    print(f"\n{load.name}: {cost:,.0f} us a request, {sum(samples.values()):,} samples")
    for name, count in sorted(samples.items(), key=lambda one: -one[1]):
        print(f"{cost * count / sum(samples.values()):8.0f} us  {PIECES.get(name, name)}")


async def profiles(connections: int, seconds: float) -> None:
    for load in LOADS:
        await profile(load, connections, seconds)


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]), sys.argv[3:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5.0)
    args = parser.parse_args()
    uvloop.run(profiles(args.connections, args.seconds))


if __name__ == "__main__":
    main()

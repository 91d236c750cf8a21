"""The five calls of a Picker flow on every gRPC server of the comparison, by the load of `bench/picker.py`."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvloop
from picker import Load, chat, measure, same, served  # type: ignore[import-not-found] # bench/picker.py

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"
IN_FLIGHT = 32
HEADERS = {"same": "indexed after the first call", "plain": "a new request id each call"}
SIZES = {"1 KB": 1024, "16 KB": 16_384}


@dataclass(frozen=True)
class Server:
    """One that runs: what it is, what it does for a flow, its process and port."""

    name: str
    work: str
    pid: int
    port: int


@contextmanager
def rival(python: Path, library: str) -> Iterator[Server]:
    command = [str(python), str(HERE / "rival_picker.py"), library]
    env = os.environ | {"PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            while not (line := process.stdout.readline().strip()).isdigit():
                if process.poll() is not None:
                    raise SystemExit(f"{library} did not start")
            yield Server(library, "carry", process.pid, int(line))
        finally:
            process.kill()


@contextmanager
def own(wire: str, work: str) -> Iterator[Server]:
    with served(wire, work) as (pid, port):
        yield Server({"own": "kinference", "grpcio": "grpc.aio"}[wire], work, pid, port)


def compare(rivals: Path | None, *, quick: bool) -> list[dict[str, object]]:
    """Flows a second of server CPU."""
    cores = sorted(os.sched_getaffinity(0))
    python = rivals / "grpc/bin/python" if rivals else None
    with ExitStack() as stack:
        os.sched_setaffinity(0, cores[-1:])  # which the servers inherit
        servers = [stack.enter_context(own(wire, work)) for work in ("carry", "full") for wire in ("own", "grpcio")]
        if python is not None and python.exists():
            servers += [stack.enter_context(rival(python, library)) for library in ("grpclib", "connectrpc")]
        os.sched_setaffinity(0, cores[:1])
        try:
            return uvloop.run(all_rounds(servers, rounds=3 if quick else 7, seconds=0.5 if quick else 1.5))
        finally:
            os.sched_setaffinity(0, cores)


async def all_rounds(servers: list[Server], rounds: int, seconds: float) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for headers, told in HEADERS.items():
        for size_name, size in SIZES.items():
            rates: Mapping[int, list[float]] = {server.pid: [] for server in servers}
            loads = [await connected(server, headers, size) for server in servers]
            for _ in range(rounds):
                for server, load in zip(servers, loads, strict=True):
                    rates[server.pid].append((await measure(server.pid, load, seconds, IN_FLIGHT))[0])
            for server, load in zip(servers, loads, strict=True):
                load.transport.close()
                values = rates[server.pid]
                rows.append(
                    {
                        "server": server.name,
                        "work": server.work,
                        "headers": told,
                        "size": size_name,
                        "per_cpu_s": values,
                    }
                )
                middle = sorted(values)[rounds // 2]
                print(
                    f"{size_name:>8} {server.work:>6} {server.name:>12} {middle:>10,.0f} flows a CPU-second", flush=True
                )
    return rows


async def connected(server: Server, headers: str, size: int) -> Load:
    load = Load(f"127.0.0.1:{server.port}", headers, chat(size))
    await asyncio.get_running_loop().create_connection(partial(same, load), "127.0.0.1", server.port)
    await asyncio.sleep(0.1)
    await measure(server.pid, load, 0, 1)  # one flow, which fills the table of header fields
    await measure(server.pid, load, 0.3, IN_FLIGHT)
    return load


if __name__ == "__main__":
    began = time.monotonic()
    compare(Path(sys.argv[1]) if len(sys.argv) > 1 else None, quick=True)
    print(f"{time.monotonic() - began:.0f} s")

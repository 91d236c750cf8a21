"""Runs the table of HTTP/2 cases against our carrier, Envoy and nginx, and writes the page that compares them.

Envoy and nginx proxy to a carrier of ours without limits, so that streams stay open and answers come as they do for
us. nginx is Debian's (`apt-get install nginx-light`); a target that is not installed is left out.

    .venv/bin/python bench/http2_conformance.py                 # all, and the page
    .venv/bin/python bench/http2_conformance.py --target nginx  # one, printed
"""

import argparse
import asyncio
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from kinference.wire.grpc_session import GrpcLimits  # noqa: E402 - the path comes first
from kinference.wire.http2.guard import Http2Limits, Nuisance, Rate  # noqa: E402 - as above
from tests.conformance.http2.case import Case, Outcome  # noqa: E402 - as above
from tests.conformance.http2.cases import CASES  # noqa: E402 - as above
from tests.conformance.http2.client import Client  # noqa: E402 - as above
from tests.conformance.http2.differences import why  # noqa: E402 - as above
from tests.conformance.http2.server import CHUNK_MAX, STREAMS_MAX, table_server  # noqa: E402 - as above
from tests.peers.envoy import running_envoy  # noqa: E402 - as above

PAGE = ROOT / "docs/reference/http2-conformance.md"
ENVOY = Path(sys.executable).with_name("envoy")
PATIENCE_S, SETTLING_S = 4.0, 0.4
AT_ONCE = 4
FREE = {kind: Rate(1e9, 1e9) for kind in Nuisance}
UNLIMITED = GrpcLimits(CHUNK_MAX, http2=Http2Limits(rates=FREE))

Results = Mapping[str, Sequence[Outcome]]


@asynccontextmanager
async def envoy() -> AsyncIterator[int]:
    with TemporaryDirectory() as folder:
        async with (
            table_server(UNLIMITED) as upstream,
            running_envoy(ENVOY, upstream, Path(folder), {"max_concurrent_streams": STREAMS_MAX}) as port,
        ):
            yield port


@asynccontextmanager
async def nginx() -> AsyncIterator[int]:
    with TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        async with table_server(UNLIMITED) as upstream:
            config = Path(folder, "nginx.conf")
            config.write_text(nginx_config(folder, port, upstream))
            process = await asyncio.create_subprocess_exec("nginx", "-c", str(config), "-e", "stderr")
            try:
                await wait_listening(port)
                yield port
            finally:
                process.terminate()
                await process.wait()


def nginx_config(folder: str, port: int, upstream: int) -> str:
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    return f"""
        daemon off; master_process off; pid {folder}/pid; error_log /dev/null;
        events {{ worker_connections 1024; }}
        http {{
            access_log off; {places}
            server {{
                listen 127.0.0.1:{port} http2; http2_max_concurrent_streams {STREAMS_MAX};
                location / {{ grpc_pass grpc://127.0.0.1:{upstream}; }}
            }}
        }}"""


async def wait_listening(port: int) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


TARGETS: Mapping[str, Callable[[], AbstractAsyncContextManager[int]]] = {
    "ours": table_server,
    "envoy": envoy,
    "nginx": nginx,
}


def version(target: str) -> str:
    """What it calls itself."""
    if target == "ours":
        return "kinference"
    if target == "nginx":
        return subprocess.run(["nginx", "-v"], capture_output=True, text=True, check=True).stderr.split()[-1]
    told = subprocess.run([ENVOY, "--version"], capture_output=True, text=True, check=True).stdout
    return "Envoy " + str(re.findall(r"/([\d.]+)/", told)[0])


async def outcomes(target: str) -> Sequence[Outcome]:
    turns = asyncio.Semaphore(AT_ONCE)

    async def play(port: int, case: Case) -> Outcome:
        async with turns:
            return await Client(port, PATIENCE_S, SETTLING_S).play(case)

    async with TARGETS[target]() as port:
        return await asyncio.gather(*(play(port, case) for case in CASES))


def printed(results: Results) -> None:
    for target, found in results.items():
        for case, outcome in zip(CASES, found, strict=True):
            if outcome != case.outcome:
                print(f"{target}: {case}: expected {case.outcome}, got {outcome}")
        print(f"{target}: {agreeing(found)} of {len(CASES)} as the table has them")


def agreeing(found: Sequence[Outcome]) -> int:
    return sum(outcome == case.outcome for case, outcome in zip(CASES, found, strict=True))


def page(results: Results) -> str:
    """The comparison as a page of documentation."""
    columns = [version(target) for target in results]
    lines = [INTRODUCTION.format(count=len(CASES), columns=", ".join(columns))]
    lines += [
        f"- {name}: {agreeing(found)} of {len(CASES)} as the table has them"
        for name, found in zip(columns, results.values(), strict=True)
    ]
    lines += [
        "",
        "## The table",
        "",
        f"| section | a client that | {' | '.join(columns)} |",
        "|---|---|" + "---|" * len(columns),
    ]
    for at, case in enumerate(CASES):
        cells = [marked(case, found[at]) for found in results.values()]
        lines.append(f"| {case.section} | {case.name} | {' | '.join(cells)} |")
    lines += ["", "## The differences", ""]
    for target, found in results.items():
        lines += explained(target, found)
    return "\n".join(lines)


def marked(case: Case, outcome: Outcome) -> str:
    return str(outcome) if outcome == case.outcome else f"**{outcome}**"


def explained(target: str, found: Sequence[Outcome]) -> list[str]:
    """Each reason once, with the cases that it holds for."""
    reasons: dict[str, list[str]] = {}
    for case, outcome in zip(CASES, found, strict=True):
        if outcome != case.outcome:
            reasons.setdefault(why(target, case, outcome), []).append(f"{case.section} {case.name}")
    if not reasons:
        return []
    lines = [f"### {version(target)}", ""]
    for reason, cases in sorted(reasons.items(), key=lambda item: -len(item[1])):
        lines += [f"- {reason} ({len(cases)}: {'; '.join(cases)})"]
    return [*lines, ""]


INTRODUCTION = """# HTTP/2 conformance

{count} cases by section of RFC 9113 (HTTP/2) and RFC 7541 (HPACK), each the bytes of a client and what has to come of
them. The suite runs them against our own carrier (`tests/conformance/http2`); `bench/http2_conformance.py` runs them
against Envoy and nginx as well, both proxying gRPC to a carrier of ours, and writes this page. Here: {columns}.

*connection* means GOAWAY with that code and the end, *stream* RST_STREAM with that code while everything else goes on,
*answered* a whole response, *none* that nothing happened and the connection serves on. Where the RFC leaves a choice
the table has ours, so a difference (in bold) is not by itself a fault of the other. What was fuzzed is told
[apart](fuzzing.md).
"""


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=sorted(TARGETS), help="this one alone, and no page")
    chosen = parser.parse_args().target
    wanted = [chosen] if chosen else list(TARGETS)
    missing = [
        target for target in wanted if target != "ours" and not shutil.which(ENVOY if target == "envoy" else "nginx")
    ]
    results = {target: await outcomes(target) for target in wanted if target not in missing}
    printed(results)
    print(*(f"{target}: not installed, left out" for target in missing), sep="\n")
    if results.keys() == TARGETS.keys():
        PAGE.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())

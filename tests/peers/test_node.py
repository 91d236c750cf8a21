"""A caller on grpc-js, directly and with Envoy in between."""

import asyncio

from tests.conformance.serving import Served
from tests.peers.conftest import ROOT


async def call_from_node(port: int, node: dict[str, str]) -> None:
    process = await asyncio.create_subprocess_exec(
        "node",
        str(ROOT / "tests/peers/node/caller.js"),
        f"127.0.0.1:{port}",
        str(ROOT / "proto"),
        "llama",
        env=node,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(60):
        output, _ = await process.communicate()
    assert (process.returncode, output) == (0, b"50 requests and every refusal\n"), output.decode()


async def test_whole_requests_and_every_refusal(server: Served, node: dict[str, str]) -> None:
    await call_from_node(server.target.port, node)


async def test_the_same_through_envoy(envoy: int, node: dict[str, str]) -> None:
    await call_from_node(envoy, node)

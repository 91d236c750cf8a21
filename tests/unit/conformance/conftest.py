"""A server to try the suite's own tools on."""

from collections.abc import AsyncIterator

import pytest

from kinference.conformance.case import Probe
from kinference.conformance.client import Client, Issued, open_channel
from tests.conformance.serving import ROOMY, Served, served


@pytest.fixture
async def server() -> AsyncIterator[Served]:
    async with served(ROOMY, settles=False) as running:
        yield running


@pytest.fixture
async def probe(server: Served) -> AsyncIterator[Probe]:
    async with open_channel(server.target) as channel:
        yield Probe(server.target, Client(channel, server.target, Issued()))

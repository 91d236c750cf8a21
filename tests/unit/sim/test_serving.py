import asyncio
import socket

import pytest

from kinference.sim.options import EngineOptions, KvEventOptions
from kinference.sim.serving import serve_engine


async def test_an_engine_listens_for_as_long_as_the_block_lasts() -> None:
    async with serve_engine(EngineOptions(models=("m",))) as running:
        assert running.url == f"http://127.0.0.1:{running.port}"
        _, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.close()
        await writer.wait_closed()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", running.port)


async def test_what_the_block_raises_comes_out_as_it_is() -> None:
    with pytest.raises(LookupError):
        async with serve_engine(EngineOptions(models=("m",))):
            raise LookupError


async def test_a_port_in_use_is_an_error_of_the_system() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        async with serve_engine(EngineOptions(models=("m",), port=taken.getsockname()[1])):
            pytest.fail("it cannot listen there")


async def test_kv_endpoints_are_told_when_there_are_any() -> None:
    options = EngineOptions(models=("m",), kv_events=KvEventOptions("tcp://127.0.0.1:*", "tcp://127.0.0.1:*"))
    async with serve_engine(options) as running:
        assert running.kv_events_endpoint.startswith("tcp://127.0.0.1:")
        assert running.kv_replay_endpoint not in ("", running.kv_events_endpoint)
    async with serve_engine(EngineOptions(models=("m",))) as running:
        assert (running.kv_events_endpoint, running.kv_replay_endpoint) == ("", "")


async def test_an_address_of_ipv6_stands_in_brackets() -> None:
    async with serve_engine(EngineOptions(models=("m",), host="::1")) as running:
        assert running.url == f"http://[::1]:{running.port}"

import asyncio
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from kinference.config.schema import Peer, Planes
from kinference.config.values import Secret, Url
from kinference.errors import ConfigError
from kinference.runtime.planes import PeerTokens, Plane, channel_to


async def test_a_plane_in_clear_text_is_connected_to_when_it_is_there() -> None:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with channel_to(Peer(Url("http", "127.0.0.1", port)), "planes.picker") as channel:
        await channel.channel.channel_ready()
    await server.stop(None)


async def test_a_plane_that_is_away_is_looked_for_often() -> None:
    looked = asyncio.Semaphore(0)

    async def turn_away(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()
        looked.release()

    async with asyncio.timeout(6), await asyncio.start_server(turn_away, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with channel_to(Peer(Url("http", "127.0.0.1", port)), "planes.picker") as channel:
            channel.channel.get_state(try_to_connect=True)
            for _ in range(5):
                await looked.acquire()


async def test_a_file_that_cannot_be_read_is_named_by_its_key(tmp_path: Path) -> None:
    peer = Peer(Url("https", "picker", 443), ca=str(tmp_path / "none.pem"))
    with pytest.raises(ConfigError, match=r"planes\.picker\.ca: .*none\.pem cannot be read"):
        async with channel_to(peer, "planes.picker"):
            pass


def test_the_tokens_are_those_of_the_last_configuration() -> None:
    peer = Peer(Url("http", "h", 1))
    tokens = PeerTokens(Planes(replace(peer, token=Secret("${T}", "first")), peer))
    assert (tokens.picker(), tokens.control()) == ("first", "")
    tokens.replace(Planes(None, replace(peer, token=Secret("${T}", "second"))))
    assert (tokens.picker(), tokens.control()) == ("", "second")
    assert "second" not in repr(tokens)


def test_planes_are_named_as_the_command_line_names_them() -> None:
    assert {plane.value for plane in Plane} == {"picker", "control", "gateway"}

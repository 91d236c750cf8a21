"""Channels whose credentials change, to a server that asks for them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from kinference.errors import ConfigError
from kinference.runtime.channels import ClientFiles, FollowedChannel
from tests.unit.wire.certificates import Pair, self_signed

POLL = 0.01


@pytest.fixture
def server_pair(tmp_path: Path) -> Pair:
    return self_signed(tmp_path, "server")


@pytest.fixture
def known_pair(tmp_path: Path) -> Pair:
    """Of the one client that the server lets in."""
    return self_signed(tmp_path, "known")


@pytest.fixture
async def target(server_pair: Pair, known_pair: Pair) -> AsyncIterator[str]:
    server = grpc.aio.server()
    shown = [(server_pair.key.read_bytes(), server_pair.certificate.read_bytes())]
    asks = grpc.ssl_server_credentials(shown, known_pair.certificate.read_bytes(), require_client_auth=True)
    port = server.add_secure_port("127.0.0.1:0", asks)
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(None)


def client_files(ca: Path, own: Pair) -> ClientFiles:
    return ClientFiles(("ca", str(ca)), ("key", str(own.key)), ("cert", str(own.certificate)))


def followed(target: str, files: ClientFiles) -> FollowedChannel:
    return FollowedChannel(files.paths, lambda: grpc.aio.secure_channel(target, files.credentials()), POLL)


async def test_a_new_certificate_is_shown_by_the_channel_that_replaces_the_old_one(
    tmp_path: Path, target: str, server_pair: Pair, known_pair: Pair
) -> None:
    own = self_signed(tmp_path, "own")
    channel = followed(target, client_files(server_pair.certificate, own))
    replaced = asyncio.Queue[grpc.aio.Channel]()
    watching = asyncio.create_task(channel.run(replaced.put_nowait))
    async with asyncio.timeout(20):
        own.certificate.write_bytes(known_pair.certificate.read_bytes())
        own.key.write_bytes(known_pair.key.read_bytes())
        fresh = await replaced.get()
        assert channel.channel is fresh
        await fresh.channel_ready()
    watching.cancel()
    await channel.close()


async def test_files_that_do_not_fit_together_change_nothing(
    tmp_path: Path, target: str, server_pair: Pair, known_pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    channel = followed(target, client_files(server_pair.certificate, known_pair))
    before = channel.channel
    watching = asyncio.create_task(channel.run(lambda _fresh: None))
    known_pair.certificate.write_bytes(self_signed(tmp_path, "other").certificate.read_bytes())
    async with asyncio.timeout(20):
        while "certificates not taken over, the old ones stay: cert: " not in caplog.text:  # noqa: ASYNC110 - only the log says so
            await asyncio.sleep(POLL)
        assert channel.channel is before
        await before.channel_ready()
    watching.cancel()
    await channel.close()


async def test_without_files_there_is_nothing_to_watch(target: str) -> None:
    channel = FollowedChannel((), lambda: grpc.aio.insecure_channel(target))
    await channel.run(lambda _fresh: None)
    await channel.close()


def test_files_that_are_no_certificates_are_named_at_once(tmp_path: Path, known_pair: Pair) -> None:
    (tmp_path / "words").write_text("words")
    with pytest.raises(ConfigError, match=r"ca: .*words is no use"):
        client_files(tmp_path / "words", known_pair).credentials()
    with pytest.raises(ConfigError, match=r"ca: .*nowhere cannot be read"):
        client_files(tmp_path / "nowhere", known_pair).credentials()
    with pytest.raises(ConfigError, match="set both of key and cert"):
        ClientFiles(("ca", None), ("key", None), ("cert", str(known_pair.certificate))).credentials()


def test_without_any_the_system_s_authorities_are_trusted() -> None:
    files = ClientFiles(("ca", None), ("key", None), ("cert", None))
    assert files.paths == ()
    assert isinstance(files.credentials(), grpc.ChannelCredentials)

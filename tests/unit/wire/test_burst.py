"""Connections that come together."""

import asyncio
import os
import ssl
from contextlib import ExitStack
from pathlib import Path
from socket import create_connection, socket
from typing import Any

import pytest

from kinference.wire.burst import AT_ONCE, Burst
from kinference.wire.http_server import OwnHttpServer
from kinference.wire.tls import HTTP, ServerTls, TlsFiles
from tests.unit.wire.certificates import self_signed
from tests.unit.wire.http1.serving import GET, RealClock, answer, echo

TURNS = 20


class Counted(asyncio.Protocol):
    """A connection that only counts."""

    def __init__(self, made: list[int]) -> None:
        self._made = made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._made.append(transport.get_extra_info("peername")[1])


@pytest.mark.parametrize("many", [1, 100, 2 * AT_ONCE + 10])
async def test_all_are_taken_within_a_few_turns_of_the_loop(many: int) -> None:
    made: list[int] = []
    burst = Burst(lambda: Counted(made))
    listener = await asyncio.get_running_loop().create_server(burst, "127.0.0.1", 0, backlog=1024)
    burst.attend(listener)
    with ExitStack() as stack:
        stack.callback(listener.close)
        stack.callback(burst.close)
        address = listener.sockets[0].getsockname()
        clients = [stack.enter_context(create_connection(address)) for _ in range(many)]
        for _ in range(TURNS):
            await asyncio.sleep(0)
        assert sorted(made) == sorted(client.getsockname()[1] for client in clients)


class Heard(asyncio.Protocol):
    """A connection that tells what came."""

    def __init__(self, heard: list[bytes]) -> None:
        self._heard = heard

    def data_received(self, data: bytes) -> None:
        self._heard.append(data)


async def test_who_came_first_is_heard_first() -> None:
    """Else whoever comes in the middle of a burst waits for the places of those behind."""
    heard: list[bytes] = []
    burst = Burst(lambda: Heard(heard))
    listener = await asyncio.get_running_loop().create_server(burst, "127.0.0.1", 0, backlog=1024)
    burst.attend(listener)
    with ExitStack() as stack:
        stack.callback(listener.close)
        stack.callback(burst.close)
        said = [b"%d" % number for number in range(3 * AT_ONCE)]
        for each in said:
            stack.enter_context(create_connection(listener.sockets[0].getsockname())).sendall(each)
        while len(heard) < len(said):  # noqa: ASYNC110 - nobody tells that it was heard
            await asyncio.sleep(0)
        assert heard == said


async def test_a_closed_one_holds_no_address() -> None:
    server = OwnHttpServer(echo, RealClock())
    port = await server.start("127.0.0.1", 0)
    await server.close()
    with pytest.raises(ConnectionRefusedError):
        create_connection(("127.0.0.1", port))


async def test_a_unix_socket_is_attended_too(tmp_path: Path) -> None:
    server, path = OwnHttpServer(echo, RealClock()), str(tmp_path / "s")
    await server.start_unix(path)
    streams = await asyncio.gather(*(asyncio.open_unix_connection(path) for _ in range(30)))
    for _, writer in streams:
        writer.write(GET)
    assert [await answer(reader) for reader, _ in streams] == [b"/ "] * 30
    for _, writer in streams:
        writer.close()
    await server.close()


async def test_who_shakes_hands_at_the_end_is_dropped(tmp_path: Path) -> None:
    """Their tasks outlived the server, for as long as a handshake may take."""
    pair, loop = self_signed(tmp_path, "server"), asyncio.get_running_loop()
    burst = Burst(asyncio.Protocol, ServerTls(TlsFiles(pair.certificate, pair.key), HTTP), 60.0)
    listener = await loop.create_server(burst, "127.0.0.1", 0, ssl=burst.ssl, start_serving=False)
    burst.attend(listener)
    before = asyncio.all_tasks()
    with ExitStack() as stack:
        stack.callback(listener.close)
        stack.callback(burst.close)
        port = stack.enter_context(socket(fileno=os.dup(listener.sockets[0].fileno())))
        port.listen()  # and not the loop, which would take them itself
        silent = [stack.enter_context(create_connection(port.getsockname())) for _ in range(20)]
        burst()
        while len(asyncio.all_tasks() - before) < len(silent):  # noqa: ASYNC110 - a handshake tells nobody that it begins
            await asyncio.sleep(0)
        burst.give_up()
        async with asyncio.timeout(10):
            for each in silent:
                reader, writer = await asyncio.open_connection(sock=each)
                assert not await reader.read()
                writer.close()
            await asyncio.gather(*(asyncio.all_tasks() - before), return_exceptions=True)


async def test_each_of_a_burst_shakes_hands_and_who_fails_to_is_nobodys_error(tmp_path: Path) -> None:
    errors: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    pair = self_signed(tmp_path, "server")
    server = OwnHttpServer(echo, RealClock(), tls=ServerTls(TlsFiles(pair.certificate, pair.key), HTTP))
    port = await server.start("127.0.0.1", 0)
    tls = ssl.create_default_context(cafile=str(pair.certificate))
    clients = [create_connection(("127.0.0.1", port)) for _ in range(20)]
    for stranger in clients[::5]:
        stranger.sendall(GET)
    known = [client for number, client in enumerate(clients) if number % 5]
    hands = (asyncio.open_connection(sock=client, ssl=tls, server_hostname="127.0.0.1") for client in known)
    streams = await asyncio.gather(*hands)
    for _, writer in streams:
        writer.write(GET)
    assert [await answer(reader) for reader, _ in streams] == [b"/ "] * 16
    for _, writer in streams:
        writer.close()
    for stranger in clients[::5]:
        reader, writer = await asyncio.open_connection(sock=stranger)
        await reader.read()  # until it is closed
        writer.close()
    await server.close()
    assert not errors

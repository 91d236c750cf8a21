"""Connections that come together."""

import asyncio
import errno
import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from socket import create_connection, socket
from typing import Any

import pytest

from kinference.wire.burst import AT_ONCE, Burst, Handshakes
from kinference.wire.connections import Tally
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
    burst.attend(listener, 1024)
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
    burst.attend(listener, 1024)
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


def handshakes(folder: Path, most: int = 100, most_per_peer: int = 100) -> Handshakes:
    pair = self_signed(folder, "server")
    return Handshakes(ServerTls(TlsFiles(pair.certificate, pair.key), HTTP), 60.0, most, most_per_peer, Tally())


@asynccontextmanager
async def shaking(hands: Handshakes) -> AsyncIterator[tuple[Burst, tuple[Any, ...]]]:
    """What takes connections, and where."""
    burst = Burst(asyncio.Protocol, hands)
    listener = await asyncio.get_running_loop().create_server(burst, "127.0.0.1", 0, start_serving=False)
    burst.attend(listener, 1024)
    try:
        yield burst, listener.sockets[0].getsockname()
    finally:
        burst.close()
        listener.close()


async def is_ended(client: socket) -> bool:
    reader, writer = await asyncio.open_connection(sock=client)
    try:
        return not await reader.read()
    except ConnectionResetError:
        return True
    finally:
        writer.close()


async def test_who_shakes_hands_at_the_end_is_dropped(tmp_path: Path) -> None:
    """They outlived the server, for as long as a handshake may take."""
    before = asyncio.all_tasks()
    async with shaking(handshakes(tmp_path)) as (burst, address), asyncio.timeout(10):
        silent = [create_connection(address) for _ in range(20)]
        while len(asyncio.all_tasks() - before) < len(silent):  # noqa: ASYNC110 - a handshake tells nobody that it begins
            await asyncio.sleep(0)
        burst.give_up()
        for each in silent:
            assert await is_ended(each)
        await asyncio.gather(*(asyncio.all_tasks() - before), return_exceptions=True)


@pytest.mark.parametrize(("most", "most_per_peer"), [(7, 100), (100, 7)])
async def test_no_more_than_so_many_shake_hands_at_once(tmp_path: Path, most: int, most_per_peer: int) -> None:
    hands, before = handshakes(tmp_path, most, most_per_peer), asyncio.all_tasks()
    async with shaking(hands) as (burst, address), asyncio.timeout(10):
        silent = [create_connection(address) for _ in range(20)]
        while hands.tally.refused < 13:  # noqa: ASYNC110 - a refusal is told to nobody
            await asyncio.sleep(0)
        for each in silent[7:]:
            assert await is_ended(each)
        silent[0].close()  # its place is another's
        while len(asyncio.all_tasks() - before) > 6:  # noqa: ASYNC110 - nor the end of a handshake
            await asyncio.sleep(0)
        silent.append(create_connection(address))
        while len(asyncio.all_tasks() - before) < 7:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert hands.tally.refused == 13
        burst.give_up()
        for each in (*silent[1:7], silent[-1]):
            assert await is_ended(each)


class Full(socket):
    """A port whose process has no descriptor left, until it has."""

    is_full = True
    asked = 0

    def accept(self) -> tuple[socket, Any]:
        self.asked += 1
        if self.is_full:
            raise OSError(errno.EMFILE, "too many open files")
        return super().accept()


async def test_without_a_descriptor_nobody_is_asked_for_in_every_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A port where somebody waits says so in each: nothing else would be done."""
    monkeypatch.setattr("kinference.wire.burst._REST", 0.001)
    before = asyncio.all_tasks()
    async with shaking(handshakes(tmp_path)) as (burst, address), asyncio.timeout(10):
        burst._unwatch()
        port = Full(fileno=burst._ports.pop().detach())
        burst._ports.append(port)
        burst._watch()
        silent = create_connection(address)
        while not port.asked:  # noqa: ASYNC110 - nobody tells that it was asked
            await asyncio.sleep(0)
        assert burst._rest is not None
        port.is_full = False
        while not asyncio.all_tasks() - before:  # noqa: ASYNC110 - a handshake tells nobody that it begins
            await asyncio.sleep(0)
        burst.give_up()
        assert await is_ended(silent)


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

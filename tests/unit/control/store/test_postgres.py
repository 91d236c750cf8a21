import socket

import pytest

from kinference.control.errors import StoreFailed
from kinference.control.store import postgres
from kinference.control.store.postgres import PostgresStore


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


async def test_a_server_that_is_not_there_is_told_so(closed_port: int) -> None:
    store = PostgresStore(f"postgresql://nobody@127.0.0.1:{closed_port}/nothing")
    with pytest.raises(StoreFailed, match="PostgreSQL store cannot be used: ConnectionRefusedError"):
        await store.open()
    await store.close()


async def test_a_server_that_accepts_and_never_answers_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = PostgresStore(f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/nothing")
        with pytest.raises(StoreFailed, match="TimeoutError: no answer in 10 s; check its address"):
            await store.open()
        await store.close()

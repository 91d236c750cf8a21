import socket

import pytest

from kinference.control.errors import StoreFailed
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

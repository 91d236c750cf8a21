import asyncio
from collections.abc import AsyncIterator

import pytest
import zmq
import zmq.asyncio

from kinference.fleet import kv_replay
from kinference.fleet.kv_replay import Numbered, ReplayFailed, replay
from tests.unit.fleet.publisher import Publisher, publishing


@pytest.fixture
async def engine() -> AsyncIterator[Publisher]:
    async with publishing() as publisher:
        yield publisher


@pytest.fixture
async def context() -> AsyncIterator[zmq.asyncio.Context]:
    made = zmq.asyncio.Context()
    yield made
    made.destroy(linger=0)


async def ask(context: zmq.asyncio.Context, port: int, first: int) -> list[Numbered]:
    return [batch async for batch in replay(context, f"tcp://127.0.0.1:{port}", first)]


@pytest.mark.parametrize("with_topic", [True, False])
async def test_all_that_is_kept_from_a_number_on_comes(
    context: zmq.asyncio.Context, engine: Publisher, with_topic: bool
) -> None:
    engine.with_topic = with_topic
    engine.kept = {3: b"c", 4: b"d", 5: b"e"}
    assert await ask(context, engine.replay_port, 4) == [Numbered(4, b"d"), Numbered(5, b"e")]
    assert await ask(context, engine.replay_port, 9) == []


async def test_one_that_does_not_answer_is_given_up(
    context: zmq.asyncio.Context, engine: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kv_replay, "REPLAY_IDLE_S", 0.05)
    engine.is_mute = True
    with pytest.raises(ReplayFailed, match="does not answer"):
        await ask(context, engine.replay_port, 0)


async def test_one_that_never_ends_is_given_up(
    context: zmq.asyncio.Context, engine: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kv_replay, "BATCHES_MAX", 3)
    engine.kept = dict.fromkeys(range(5), b"x")
    with pytest.raises(ReplayFailed, match="come to an end"):
        await ask(context, engine.replay_port, 0)


@pytest.mark.parametrize("frames", [(b"x",), (b"", b"short", b"x"), (b"", (-7).to_bytes(8, "big", signed=True), b"")])
async def test_another_protocol_is_told_as_such(context: zmq.asyncio.Context, frames: tuple[bytes, ...]) -> None:
    router = context.socket(zmq.ROUTER)
    port = router.bind_to_random_port("tcp://127.0.0.1")
    answers = replay(context, f"tcp://127.0.0.1:{port}", 0)
    asking = answers.__anext__()

    async def answer() -> None:
        client, *_ = await router.recv_multipart()
        await router.send_multipart((client, *frames))

    answering = asyncio.create_task(answer())
    with pytest.raises(ReplayFailed, match="another protocol"):
        await asking
    await answering
    router.close(linger=0)

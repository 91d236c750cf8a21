import asyncio
from typing import Any

import msgspec
import pytest
import zmq
import zmq.asyncio

from kinference.sim.events import BlocksRemoved, BlocksStored, FirstToken
from kinference.sim.kv_cache import BlockHash
from kinference.sim.kv_events import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    KvEventPublisher,
    encode_batch,
    translate,
)
from kinference.sim.options import KvEventOptions
from kinference.sim.runner import Job
from kinference.sim.text import pad, token_ids

BLOCKS = tuple(BlockHash(number) for number in (11, 12, 13))
JOB = Job(pad("a" * 16 + "b" * 8), pad("c" * 8), BLOCKS, "tenant")


def job_of(_: int) -> Job:
    return JOB


def test_a_stored_block_is_told_with_its_tokens_its_parent_and_its_salt() -> None:
    told = translate([BlocksStored(0.0, 1, first=0, count=2)], job_of, block_tokens=2)
    assert told == [
        BlockStored(
            block_hashes=[11, 12],
            parent_block_hash=None,
            token_ids=token_ids(pad("a" * 16)),
            block_size=2,
            extra_keys=[["tenant"], None],
        )
    ]
    (later,) = translate([BlocksStored(0.0, 1, first=2, count=1)], job_of, block_tokens=2)
    assert isinstance(later, BlockStored)
    assert (later.parent_block_hash, later.extra_keys) == (12, [None])


def test_each_removed_block_is_an_event_and_tokens_are_none() -> None:
    told = translate([FirstToken(0.0, 1), BlocksRemoved(0.0, BLOCKS[:2])], job_of, block_tokens=2)
    assert told == [BlockRemoved(block_hashes=[11]), BlockRemoved(block_hashes=[12])]


def test_a_batch_is_time_events_and_rank_with_events_as_maps() -> None:
    stored = BlockStored(block_hashes=[2**64 - 1], parent_block_hash=None, token_ids=[1], block_size=1)
    assert msgspec.msgpack.decode(encode_batch(5.0, [AllBlocksCleared(), stored])) == [
        5.0,
        [
            {"type": "AllBlocksCleared"},
            {
                "type": "BlockStored",
                "block_hashes": [2**64 - 1],
                "parent_block_hash": None,
                "token_ids": [1],
                "block_size": 1,
                "lora_id": None,
                "medium": "GPU",
                "lora_name": None,
                "extra_keys": None,
                "group_idx": 0,
                "kv_cache_spec_kind": "full_attention",
            },
        ],
        0,
    ]


def test_older_engines_sent_arrays() -> None:
    batch = msgspec.msgpack.decode(encode_batch(5.0, [BlockRemoved(block_hashes=[7])], positional=True))
    assert batch == [5.0, [["BlockRemoved", [7], "GPU", 0]], 0]


@pytest.fixture
async def publisher() -> Any:
    made = KvEventPublisher(KvEventOptions("tcp://127.0.0.1:*", "tcp://127.0.0.1:*", "kv@host@m"))
    made.open()
    replays = asyncio.create_task(made.serve_replay())
    yield made
    replays.cancel()
    await asyncio.gather(replays, return_exceptions=True)
    made.close()


async def ask_for(publisher: KvEventPublisher, question: list[bytes]) -> list[tuple[bytes, bytes, bytes]]:
    """What the replay socket answers, up to its end mark."""
    with zmq.asyncio.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.connect(publisher.replay_endpoint)
        await socket.send_multipart(question)
        answers: list[tuple[bytes, bytes, bytes]] = []
        while not answers or answers[-1][1] != b"\xff" * 8:
            empty, topic, number, payload = await socket.recv_multipart()
            assert empty == b""
            answers.append((topic, number, payload))
    return answers


async def test_replay_starts_where_the_subscriber_says_and_ends_with_a_mark(publisher: KvEventPublisher) -> None:
    for number in range(3):
        publisher.publish(float(number), [BlockRemoved(block_hashes=[number])])
    answers = await ask_for(publisher, [b"", (1).to_bytes(8, "big")])
    assert [(topic, int.from_bytes(number, "big", signed=True)) for topic, number, _ in answers] == [
        (b"kv@host@m", 1),
        (b"kv@host@m", 2),
        (b"", -1),
    ]
    assert answers[-1][2] == b""


async def test_replay_survives_a_question_that_is_none(publisher: KvEventPublisher) -> None:
    with zmq.asyncio.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.connect(publisher.replay_endpoint)
        await socket.send_multipart([b"", b"soon"])
    assert len(await ask_for(publisher, [b"", (0).to_bytes(8, "big")])) == 1


async def test_a_subscriber_gets_three_frames(publisher: KvEventPublisher) -> None:
    with zmq.asyncio.Context() as context, context.socket(zmq.SUB) as socket:
        socket.subscribe(b"")
        socket.connect(publisher.endpoint)
        frames: list[bytes] = []
        while not frames:  # a subscription takes a moment to arrive
            publisher.publish(1.0, [AllBlocksCleared()])
            if await socket.poll(20):
                frames = await socket.recv_multipart()
    topic, number, payload = frames
    assert (topic, len(number)) == (b"kv@host@m", 8)
    assert msgspec.msgpack.decode(payload) == [1.0, [{"type": "AllBlocksCleared"}], 0]


async def test_an_empty_batch_is_not_sent(publisher: KvEventPublisher) -> None:
    publisher.publish(1.0, [])
    assert len(await ask_for(publisher, [b"", (0).to_bytes(8, "big")])) == 1


def test_without_endpoints_nothing_is_open() -> None:
    publisher = KvEventPublisher(KvEventOptions())
    publisher.open()
    assert not publisher.is_open
    publisher.close()


async def test_an_endpoint_in_use_is_an_error_of_the_system(publisher: KvEventPublisher) -> None:
    second = KvEventPublisher(KvEventOptions(publisher.endpoint))
    with pytest.raises(OSError, match="in use"):
        second.open()
    second.close()

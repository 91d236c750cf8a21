"""PushBody, clause by clause."""

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from grpc import StatusCode

from tests.conformance.picker.client import (
    BAD_REQUEST,
    CHAT,
    MIB,
    OK,
    Client,
    Server,
    as_they_are,
    declared,
    decode,
    encode,
    forever,
    status_of,
    until,
)


@pytest.mark.parametrize("chunks", [[], [b""], [b"", b"", b""]])
async def test_an_empty_push_is_complete_and_no_request(client: Client, chunks: list[bytes]) -> None:
    stream_id, total = await client.push(*chunks)
    assert total == 0
    assert (await client.pick(stream_id)).outcome == BAD_REQUEST


async def test_a_chunk_of_one_mebibyte_passes(client: Client) -> None:
    assert (await client.push(b"x" * MIB))[1] == MIB


async def test_a_chunk_of_one_byte_more_exhausts(client: Client, server: Server) -> None:
    assert await status_of(client.push_call([b"small", b"x" * (MIB + 1)])) is StatusCode.RESOURCE_EXHAUSTED
    await until(server.is_idle)


@pytest.mark.parametrize("message", [b"\x0a\xff", b"\x0a\x05ab", b"\x0f", b"\x0a" + b"\xff" * 11])
async def test_what_is_no_chunk_is_invalid(client: Client, server: Server, message: bytes) -> None:
    call = client.push_raw(as_they_are(encode({1: b"good"}), message))
    assert await status_of(call) is StatusCode.INVALID_ARGUMENT
    await until(server.is_idle)


async def test_unknown_fields_are_skipped_and_the_last_of_a_repeated_field_wins(client: Client) -> None:
    message = encode({1: b"lost"}) + encode({7: b"unknown", 9: 5}) + encode({1: b"kept!"})
    call = client.push_raw(as_they_are(message))
    assert decode(await call)[2] == 5


@pytest.mark.parametrize(
    ("length", "status"),
    [
        (len(CHAT), StatusCode.OK),
        (len(CHAT) + 1, StatusCode.INVALID_ARGUMENT),
        (len(CHAT) - 1, StatusCode.INVALID_ARGUMENT),
        (0, StatusCode.INVALID_ARGUMENT),
        (32 * MIB, StatusCode.INVALID_ARGUMENT),
        (32 * MIB + 1, StatusCode.RESOURCE_EXHAUSTED),
        (2**64 - 1, StatusCode.RESOURCE_EXHAUSTED),
        (2**64, StatusCode.INVALID_ARGUMENT),
        ("-1", StatusCode.INVALID_ARGUMENT),
        ("5.0", StatusCode.INVALID_ARGUMENT),
        ("many", StatusCode.INVALID_ARGUMENT),
        ("", StatusCode.INVALID_ARGUMENT),
    ],
)
async def test_the_declared_length(client: Client, length: object, status: StatusCode) -> None:
    assert await status_of(client.push_call([CHAT], declared(length))) is status


@pytest.mark.parametrize(("second", "status"), [(0, StatusCode.OK), (1, StatusCode.INVALID_ARGUMENT)])
async def test_a_length_declared_twice_must_agree(client: Client, second: int, status: StatusCode) -> None:
    metadata = [*declared(len(CHAT)), *declared(len(CHAT) + second)]
    assert await status_of(client.push_call([CHAT], metadata)) is status


@pytest.mark.parametrize("length", [3, "x", 64 * MIB])
async def test_a_hopeless_push_is_refused_without_reading_the_rest(client: Client, length: object) -> None:
    call = client.push_call(forever(), declared(length))
    async with asyncio.timeout(10):
        assert await status_of(call) is not StatusCode.OK


@pytest.mark.parametrize("server", [{"body_max_bytes": 1000, "buffer_max_bytes": 2500}], indirect=True)
async def test_budgets_are_kept_to_the_byte(client: Client, server: Server) -> None:
    assert await status_of(client.push_call([b"x" * 1001])) is StatusCode.RESOURCE_EXHAUSTED
    assert await status_of(client.push_call([b"x" * 600, b"x" * 401])) is StatusCode.RESOURCE_EXHAUSTED
    held = [(await client.push(b"x" * 600, b"x" * 400))[0] for _ in range(2)]
    assert await status_of(client.push_call([b"x" * 501])) is StatusCode.RESOURCE_EXHAUSTED
    assert (await client.push(b"x" * 500))[1] == 500
    assert server.buffered_bytes() == 2500
    assert (await client.pick(held[0])).outcome == BAD_REQUEST
    assert (await client.push(b"x" * 1000))[1] == 1000


@pytest.mark.parametrize("server", [{"push_idle_timeout": 0.1}], indirect=True)
async def test_an_idle_push_exceeds_its_deadline(client: Client, server: Server) -> None:
    assert await status_of(client.push_call(forever())) is StatusCode.DEADLINE_EXCEEDED
    await until(server.is_idle)


@pytest.mark.parametrize("server", [{"push_idle_timeout": 1.0}], indirect=True)
async def test_a_slow_but_steady_push_is_never_cut(client: Client) -> None:
    async def steady() -> AsyncIterator[bytes]:
        for _ in range(15):
            yield b"x"
            await asyncio.sleep(0.1)

    assert decode(await client.push_call(steady()))[2] == 15


@pytest.mark.parametrize("how", ["reset", "deadline"])
async def test_a_broken_push_is_discarded(client: Client, server: Server, how: str) -> None:
    call = client.push_call(forever(), timeout=0.3 if how == "deadline" else None)
    await until(lambda: server.buffered_bytes() == 5)
    if how == "reset":
        call.cancel()
    await until(server.is_idle)
    assert server.buffered_bytes() == 0


async def test_pushes_that_are_reset_at_any_moment_leave_nothing(client: Client, server: Server) -> None:
    async def reset(turns: int) -> None:
        call = client.push_call([CHAT] * 3 + [b"x" * 9000] * 3)
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()

    await asyncio.gather(*(reset(number % 25) for number in range(150)))
    await until(server.is_idle)
    assert server.buffered_bytes() == 0


async def test_a_closed_connection_discards_its_pushes(server: Server) -> None:
    async with grpc.aio.insecure_channel(server.target) as channel:
        calls = [Client(channel).push_call(forever()) for _ in range(10)]
        await until(lambda: server.buffered_bytes() == 50)
    await until(server.is_idle)
    assert all(call.done() for call in calls)


async def test_small_chunks_in_great_number(client: Client) -> None:
    stream_id, total = await client.push(*[CHAT[at : at + 1] for at in range(len(CHAT))])
    assert total == len(CHAT)
    assert (await client.pick(stream_id)).outcome == OK


async def test_of_thousands_of_pushes_opened_at_once_none_is_refused(client: Client) -> None:
    codes = await asyncio.gather(*(status_of(client.push_call([b"x"])) for _ in range(2500)))
    assert set(codes) == {StatusCode.OK}

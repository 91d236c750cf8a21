"""Reports, Abort and what time reclaims, clause by clause."""

import grpc
import pytest
from grpc import StatusCode

from tests.conformance.picker.client import (
    BACKEND_UNAUTHORIZED,
    BACKEND_UNRESOLVED,
    CHAT,
    NO_WORKERS,
    NOT_DISPATCHED,
    PULL_FAILED,
    Client,
    Fields,
    Server,
    status_of,
    until,
)


async def test_reports_are_acknowledged_while_the_id_is_live(client: Client) -> None:
    picked = await client.pushed_and_picked()
    assert await client.first(picked.response_id)
    assert await client.first(picked.response_id, status=503)
    assert await client.final(picked.response_id)
    assert not await client.final(picked.response_id)
    assert not await client.first(picked.response_id)
    for unknown in (0, 12345):
        assert not await client.first(unknown)
        assert not await client.final(unknown)


@pytest.mark.parametrize(
    "fields",
    [
        {5: 0},
        {5: 2**32 - 1},
        {6: bytes(range(15)), 7: 1},
        {6: bytes(14), 7: 1},
        {6: bytes(15), 7: 2},
        {6: b"", 7: 1},
        {3: 0, 4: 0},
    ],
)
async def test_a_final_report_without_a_first_one_closes_the_request(
    client: Client, server: Server, fields: Fields
) -> None:
    picked = await client.pushed_and_picked()
    assert await client.final(picked.response_id, fields)
    assert server.is_idle()


@pytest.mark.parametrize("moment", ["before the pull", "after the pull", "after the first token"])
@pytest.mark.parametrize("reason", [0, NOT_DISPATCHED, PULL_FAILED, BACKEND_UNRESOLVED, BACKEND_UNAUTHORIZED, 99])
async def test_an_abort_releases_once(client: Client, server: Server, moment: str, reason: int) -> None:
    picked = await client.pushed_and_picked()
    if moment != "before the pull":
        await client.pull(picked.response_id)
    if moment == "after the first token":
        await client.first(picked.response_id)
    assert await client.abort(picked.response_id, reason)
    assert not await client.abort(picked.response_id, reason)
    assert not await client.abort(picked.response_id)
    assert server.is_idle()
    assert server.buffered_bytes() == 0


async def test_reports_may_come_on_another_connection(client: Client, server: Server) -> None:
    picked = await client.pushed_and_picked()
    async with grpc.aio.insecure_channel(server.target) as channel:
        assert await Client(channel).first(picked.response_id)
        assert await Client(channel).final(picked.response_id)
    assert not await client.abort(picked.response_id)


async def test_an_abort_of_no_id_releases_nothing(client: Client) -> None:
    assert not await client.abort(0)
    assert not await client.abort(12345)


@pytest.mark.parametrize("reason", [BACKEND_UNRESOLVED, BACKEND_UNAUTHORIZED])
async def test_a_backend_that_callers_cannot_use_is_not_picked_again(client: Client, reason: int) -> None:
    body = b'{"model":"gpt","messages":[{"role":"user","content":"hi"}]}'
    assert await client.abort((await client.pushed_and_picked(body)).response_id, reason)
    picked = await client.pushed_and_picked(body)
    assert picked.outcome == NO_WORKERS
    assert "cloud" in picked.reason


@pytest.mark.parametrize("server", [{"body_ttl": 0.2}], indirect=True)
async def test_what_is_abandoned_is_reclaimed_with_no_call_made_meanwhile(client: Client, server: Server) -> None:
    unpicked, _ = await client.push(CHAT)
    unpulled = await client.pushed_and_picked()
    assert server.buffered_bytes() == 2 * len(CHAT)
    await until(server.is_idle)
    assert server.buffered_bytes() == 0
    assert await status_of(client.pick(unpicked)) is StatusCode.NOT_FOUND
    assert await status_of(client.pull(unpulled.response_id)) is StatusCode.NOT_FOUND
    assert not await client.abort(unpulled.response_id)

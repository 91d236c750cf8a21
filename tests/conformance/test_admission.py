"""Picks that wait for an engine, black box, on either carrier: answered, cancelled, timed out, refused with a hint."""

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from grpc import StatusCode

from kinference.conformance.case import chat
from kinference.conformance.client import SERVICE, Client, Issued, Outcome, Picked, open_channel, status_of
from kinference.conformance.message import encode
from kinference.core.waiting import AdmissionRules, ClassRule
from kinference.picker.limits import PickerLimits
from kinference.vocabulary import QosClass
from tests.conformance.serving import CARRIERS, Served, Setup, served

PATIENT = 60.0
CHAT = chat("llama", "x" * 200_000)
"""Five seconds of work on either engine, as far as is known of them: nobody else can start soon."""


def busy(wait_max_s: float, waiting_max: int = 10) -> Setup:
    classes = {qos: ClassRule(2.0, wait_max_s) for qos in QosClass}
    return Setup(PickerLimits(admission=AdmissionRules(classes=classes, waiting_max=waiting_max)))


@pytest.fixture(params=CARRIERS)
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    async with served(busy(PATIENT), request.param) as running:
        yield running


@pytest.fixture
async def client(server: Served) -> AsyncIterator[Client]:
    async with open_channel(server.target) as channel:
        client = Client(channel, server.target, Issued())
        yield client
        await client.tidy()


async def fill(client: Client) -> list[Picked]:
    """Both engines have all that they can do."""
    return [await client.push_and_pick(chat("llama", sign * 200_000)) for sign in "ab"]


async def test_a_pick_waits_until_a_report_makes_room(client: Client, server: Served) -> None:
    running = await fill(client)
    waiting = asyncio.ensure_future(client.push_and_pick(CHAT))
    await server.wait_until(lambda: len(server.desk.admission) == 1)
    assert await client.first_token(running[0].response_id)
    picked = await waiting
    assert picked.outcome == Outcome.OK
    assert picked.reason.startswith("waited ")
    assert b"".join(await client.pull(picked.response_id)) == CHAT


async def test_a_pick_whose_deadline_passes_leaves_its_body_to_another(client: Client, server: Served) -> None:
    running = await fill(client)
    stream_id, _ = await client.push(CHAT)
    pick: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = client.channel.unary_unary(SERVICE + "Pick")
    request = encode({1: stream_id, 5: b"acme"})
    call = pick(request, timeout=0.3)
    await server.wait_until(lambda: len(server.desk.admission) == 1)
    assert await status_of(pick(request)) is StatusCode.FAILED_PRECONDITION
    assert await status_of(call) is StatusCode.DEADLINE_EXCEEDED
    await server.wait_until(lambda: len(server.desk.admission) == 0)
    cancelled = pick(request)
    await server.wait_until(lambda: len(server.desk.admission) == 1)
    cancelled.cancel()
    await server.wait_until(lambda: len(server.desk.admission) == 0)
    await client.first_token(running[0].response_id)
    assert (await client.pick(stream_id)).outcome == Outcome.OK


async def test_whoever_is_cut_off_waits_no_longer(server: Served) -> None:
    async with open_channel(server.target) as channel:
        client = Client(channel, server.target, Issued())
        running = await fill(client)
        async with open_channel(server.target) as other:
            waiting = asyncio.ensure_future(Client(other, server.target, Issued()).push_and_pick(CHAT))
            await server.wait_until(lambda: len(server.desk.admission) == 1)
        await asyncio.gather(waiting, return_exceptions=True)
        await server.wait_until(lambda: len(server.desk.admission) == 0)
        await asyncio.gather(*(client.abort(one.response_id) for one in running))
    for stream_id in tuple(server.desk._bodies._live):
        server.desk._bodies._drop(stream_id)  # its time would be over in two minutes


async def test_who_waits_too_long_is_refused_and_told_when_to_try_again() -> None:
    async with served(busy(0.2)) as server, open_channel(server.target) as channel:
        client = Client(channel, server.target, Issued())
        running = await fill(client)
        picked = await client.push_and_pick(CHAT)
        assert picked.outcome == Outcome.POLICY_REJECTED
        assert picked.reason.startswith("saturated: waited 0 s and no engine had room; try again in ")
        await asyncio.gather(*(client.abort(one.response_id) for one in running))


async def test_deferrable_requests_are_shed_first() -> None:
    async with served(busy(PATIENT, waiting_max=1)) as server, open_channel(server.target) as channel:
        client = Client(channel, server.target, Issued())
        running = await fill(client)
        deferrable = asyncio.ensure_future(client.push_and_pick(CHAT, {4: QosClass.DEFERRABLE.value}))
        await server.wait_until(lambda: len(server.desk.admission) == 1)
        interactive = asyncio.ensure_future(client.push_and_pick(CHAT))
        shed = await deferrable
        assert shed.outcome == Outcome.POLICY_REJECTED
        assert shed.reason.startswith("saturated: more urgent requests took the last of 1 places to wait")
        assert (await client.push_and_pick(CHAT)).reason.startswith("saturated: 1 requests wait already")
        await client.first_token(running[0].response_id)
        await asyncio.gather(*(client.abort(one.response_id) for one in (*running, await interactive)))

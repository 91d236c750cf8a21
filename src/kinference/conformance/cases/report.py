"""Reports: what is acknowledged, and in which order they may come."""

import asyncio
from itertools import permutations

from grpc import StatusCode

from kinference.conformance.case import Probe, case
from kinference.conformance.claims import expect, expect_equal
from kinference.conformance.client import status_of
from kinference.conformance.message import Fields
from kinference.conformance.target import MODEL, SHORT_TTL

STATUSES = (0, 100, 200, 204, 302, 400, 401, 403, 404, 429, 500, 503, 599, 9999, -1)
FINALS: tuple[Fields, ...] = (
    {},
    {5: 0},
    {5: 60},
    {5: 2**32 - 1},
    {3: 0, 4: 0},
    {3: 2**32 - 1, 4: 2**32 - 1},
    {2: b""},
    {2: b"x" * 5000},
    {6: bytes(range(15)), 7: 1},
    {6: bytes(14), 7: 1},
    {6: bytes(16), 7: 1},
    {6: bytes(15), 7: 0},
    {6: bytes(15), 7: 2},
    {6: b"", 7: 1},
    {6: b"\xff\xff\xff\xff\x0f" * 15, 7: 1},
    {7: 99},
    {42: b"later"},
)


@case("R1", needs=(MODEL,))
async def a_first_report_is_acknowledged_while_the_request_lives(probe: Probe) -> None:
    picked = await probe.choice()
    expect(await probe.client.first_token(picked.response_id), "the first-token report was not acknowledged")
    expect(await probe.client.first_token(picked.response_id, 503), "a repeated one was not acknowledged")
    expect(await probe.client.final_token(picked.response_id), "the final report after them was not acknowledged")


@case("R2", needs=(MODEL,))
async def a_final_report_closes_the_request(probe: Probe) -> None:
    picked = await probe.choice()
    expect(await probe.client.final_token(picked.response_id), "the final report was not acknowledged")
    expect(not await probe.client.final_token(picked.response_id), "a second final report was acknowledged")
    expect(not await probe.client.first_token(picked.response_id), "a first report after the final was acknowledged")
    expect(not await probe.client.abort(picked.response_id), "an abort after the final report released something")


@case("R3")
async def a_report_of_an_unknown_id_is_no_failure(probe: Probe) -> None:
    for response_id in (0, 1, 12345, 2**64 - 1):
        expect(not await probe.client.first_token(response_id), f"a first report of {response_id} was acknowledged")
        expect(not await probe.client.final_token(response_id), f"a final report of {response_id} was acknowledged")


@case("R4", needs=(MODEL,))
async def pull_and_reports_may_come_in_any_order_or_not_at_all(probe: Probe) -> None:
    for steps in permutations(("pull", "first", "first", "final")):
        picked = await probe.choice()
        is_live = True
        for step in steps:
            if step == "pull":
                status = await status_of(probe.client.pull(picked.response_id))
                wanted = StatusCode.OK if is_live else StatusCode.NOT_FOUND
                expect_equal(status, wanted, f"the status of the pull in {steps}")
            elif step == "first":
                expect_equal(await probe.client.first_token(picked.response_id), is_live, f"first in {steps}")
            else:
                expect(await probe.client.final_token(picked.response_id), f"final in {steps}")
                is_live = False


@case("R5", needs=(MODEL,))
async def any_upstream_status_is_a_report(probe: Probe) -> None:
    for status in STATUSES:
        picked = await probe.client.push_and_pick(probe.chat())
        if picked.is_choice:  # failures that were reported may have taken the destination out
            expect(await probe.client.first_token(picked.response_id, status), f"{status} was not acknowledged")
            expect(await probe.client.final_token(picked.response_id), f"the final after {status} was not")


@case("R6", needs=(MODEL,))
async def what_a_final_report_leaves_out_or_exaggerates_is_no_failure(probe: Probe) -> None:
    for fields in FINALS:
        picked = await probe.choice()
        expect(
            await probe.client.final_token(picked.response_id, fields), f"a report with {fields} was not acknowledged"
        )


@case("R7", needs=(MODEL,))
async def reports_may_come_on_another_connection(probe: Probe) -> None:
    picked = await probe.choice()
    async with probe.another_connection() as other:
        expect(await other.first_token(picked.response_id), "the first report was not acknowledged")
        expect(await other.final_token(picked.response_id), "the final report was not acknowledged")


@case("R8")
async def what_is_no_report_is_invalid(probe: Probe) -> None:
    for method in ("ReportFirstToken", "ReportFinalToken", "Abort"):
        for request in (b"\xff", b"\x12\x05ab"):
            status = await status_of(probe.client.unary(method, request))
            expect_equal(status, StatusCode.INVALID_ARGUMENT, f"the status of {method} with {request.hex()}")


@case("R9", needs=(MODEL, SHORT_TTL))
async def a_request_that_was_dispatched_outlives_the_time_of_bodies(probe: Probe) -> None:
    picked = await probe.choice()
    await probe.client.pull(picked.response_id)
    await asyncio.sleep(probe.target.limits.body_ttl + 0.5)
    expect(await probe.client.first_token(picked.response_id), "a late first report was not acknowledged")
    expect(await probe.client.final_token(picked.response_id), "a late final report was not acknowledged")


@case("R9", needs=(MODEL, SHORT_TTL))
async def a_request_that_nobody_pulled_or_reported_is_closed_in_time(probe: Probe) -> None:
    picked = await probe.choice()
    await asyncio.sleep(probe.target.limits.body_ttl + 0.5)
    expect(not await probe.client.first_token(picked.response_id), "a report after the TTL was acknowledged")

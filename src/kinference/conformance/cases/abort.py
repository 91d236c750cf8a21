"""Abort: zero times, once, often."""

import asyncio

from kinference.conformance.case import Probe, case
from kinference.conformance.claims import expect, expect_equal
from kinference.conformance.target import MODEL

NEUTRAL_REASONS = (0, 1, 2, 5, 99, 2**31 - 1)
"""Those that say nothing about a backend, unknown numbers among them."""


@case("A1", needs=(MODEL,))
async def the_first_abort_releases_and_no_other_does(probe: Probe) -> None:
    for reason in NEUTRAL_REASONS:
        picked = await probe.choice()
        expect(await probe.client.abort(picked.response_id, reason), f"reason {reason} released nothing")
        for _ in range(2):
            expect(not await probe.client.abort(picked.response_id, reason), "a second abort released something")


@case("A2", needs=(MODEL,))
async def an_abort_may_come_at_any_moment(probe: Probe) -> None:
    for moment in range(3):
        picked = await probe.choice()
        if moment >= 1:
            await probe.client.pull(picked.response_id)
        if moment >= 2:  # noqa: PLR2004 - the third moment
            await probe.client.first_token(picked.response_id)
        expect(await probe.client.abort(picked.response_id), "the abort released nothing")
        expect(not await probe.client.final_token(picked.response_id), "a report after the abort was acknowledged")


@case("A3")
async def an_abort_of_an_unknown_id_is_no_failure(probe: Probe) -> None:
    for response_id in (0, 1, 12345, 2**64 - 1):
        expect(not await probe.client.abort(response_id), f"an abort of {response_id} released something")


@case("A4", needs=(MODEL,))
async def of_many_aborts_at_once_exactly_one_releases(probe: Probe) -> None:
    picked = await probe.choice()
    released = await asyncio.gather(*(probe.client.abort(picked.response_id) for _ in range(20)))
    expect_equal(sum(released), 1, "aborts that released something")


@case("A5", needs=(MODEL,))
async def of_an_abort_and_a_final_report_at_once_exactly_one_counts(probe: Probe) -> None:
    for _ in range(10):
        picked = await probe.choice()
        calls = (probe.client.abort(picked.response_id), probe.client.final_token(picked.response_id))
        expect_equal(sum(await asyncio.gather(*calls)), 1, "calls that closed the request")

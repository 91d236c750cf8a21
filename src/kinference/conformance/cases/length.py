"""PushBody with `kinference-declared-length`: what the client said, against what came."""

from grpc import StatusCode

from kinference.conformance.case import Probe, case
from kinference.conformance.claims import expect, expect_equal
from kinference.conformance.client import declared, status_of

BODY = b"x" * 500
AT_ONCE = 10.0
NO_LENGTHS = ("-1", "+500", "5.0", "0x1f4", "many", "", "500 bytes", "5_00", 2**64, "9" * 400)


@case("D1")
async def an_equal_length_passes(probe: Probe) -> None:
    for body, length in ((BODY, len(BODY)), (BODY, f"000{len(BODY)}"), (b"", 0)):
        reply = await probe.client.push_chunks([body], declared(length))
        expect_equal(probe.client.pushed(reply)[1], len(body), "total_bytes")


@case("D2")
async def fewer_bytes_than_declared_are_invalid(probe: Probe) -> None:
    for length in (len(BODY) + 1, len(BODY) * 2):
        status = await status_of(probe.client.push_chunks([BODY], declared(length)))
        expect_equal(
            status, StatusCode.INVALID_ARGUMENT, f"the status of {len(BODY)} bytes where {length} were declared"
        )


@case("D3")
async def more_bytes_than_declared_are_invalid(probe: Probe) -> None:
    for length in (len(BODY) - 1, 0):
        status = await status_of(probe.client.push_chunks([BODY], declared(length)))
        expect_equal(
            status, StatusCode.INVALID_ARGUMENT, f"the status of {len(BODY)} bytes where {length} were declared"
        )


@case("D4")
async def too_many_bytes_end_the_push_at_once(probe: Probe) -> None:
    status = await status_of(await probe.client.begin_push(BODY, metadata=declared(len(BODY) - 1), timeout=AT_ONCE))
    expect_equal(status, StatusCode.INVALID_ARGUMENT, "the status of a push that does not end")


@case("D5")
async def a_length_over_the_budget_exhausts_at_once(probe: Probe) -> None:
    for length in (probe.target.limits.body_max + 1, 2**64 - 1):
        status = await status_of(await probe.client.begin_push(metadata=declared(length), timeout=AT_ONCE))
        expect_equal(status, StatusCode.RESOURCE_EXHAUSTED, f"the status where {length} bytes were declared")


@case("D5")
async def a_length_at_the_budget_is_no_refusal(probe: Probe) -> None:
    status = await status_of(probe.client.push_chunks([BODY], declared(probe.target.limits.body_max)))
    expect_equal(status, StatusCode.INVALID_ARGUMENT, "the status of too few bytes for the largest length")


@case("D6")
async def what_is_no_length_is_invalid(probe: Probe) -> None:
    for length in NO_LENGTHS:
        status = await status_of(probe.client.push_chunks([BODY], declared(length)))
        expect_equal(status, StatusCode.INVALID_ARGUMENT, f"the status where {str(length)[:30]!r} was declared")


@case("D7")
async def a_length_declared_twice_must_agree(probe: Probe) -> None:
    same = [*declared(len(BODY)), *declared(len(BODY))]
    reply = await probe.client.push_chunks([BODY], same)
    expect(probe.client.pushed(reply)[0], "the answer names the stream_id 0")
    for second in (len(BODY) + 1, len(BODY) - 1):
        for lengths in ((len(BODY), second), (second, len(BODY))):
            metadata = [*declared(lengths[0]), *declared(lengths[1])]
            status = await status_of(probe.client.push_chunks([BODY], metadata))
            expect_equal(status, StatusCode.INVALID_ARGUMENT, f"the status where {lengths} were declared")

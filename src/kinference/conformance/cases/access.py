"""Bearer tokens, for a server that asks for one."""

from grpc import StatusCode

from kinference.conformance.case import Probe, case
from kinference.conformance.claims import expect_equal
from kinference.conformance.client import Client, Issued, status_of
from kinference.conformance.message import encode
from kinference.conformance.target import TOKEN

UNARY = ("Pick", "ReportFirstToken", "ReportFinalToken", "Abort")


@case("S1", needs=(TOKEN,))
async def a_call_without_the_token_is_unauthenticated(probe: Probe) -> None:
    token = probe.target.security.token
    for what, shown in (("no", ""), ("a wrong", "wrong"), ("half a", token[:-1]), ("too long a", token + "x")):
        client = Client(probe.client.channel, probe.target.with_token(shown), Issued())
        statuses = {method: await status_of(client.unary(method, encode({1: 1}))) for method in UNARY}
        statuses |= {"PushBody": await status_of(client.push(b"x")), "PullBody": await status_of(client.pull(1))}
        for method, status in statuses.items():
            expect_equal(status, StatusCode.UNAUTHENTICATED, f"the status of {method} with {what} token")


@case("S1", needs=(TOKEN,))
async def health_is_told_without_the_token(probe: Probe) -> None:
    client = Client(probe.client.channel, probe.target.with_token(""), Issued())
    status = await status_of(client.unary("/grpc.health.v1.Health/Check", b""))
    expect_equal(status, StatusCode.OK, "the status of a health check")


@case("S1", needs=(TOKEN,))
async def a_call_with_the_token_is_served(probe: Probe) -> None:
    stream_id, total = await probe.client.push(b"x")
    expect_equal(total, 1, "total_bytes")
    expect_equal(await status_of(probe.client.pick(stream_id)), StatusCode.OK, "the status of Pick")

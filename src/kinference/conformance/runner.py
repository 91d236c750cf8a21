"""Runs cases against a target, one after another, each on a connection of its own."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from enum import Enum

import grpc

from kinference.conformance.case import Case, Probe
from kinference.conformance.claims import Unexpected
from kinference.conformance.client import Client, Issued, Muddled, open_channel
from kinference.conformance.message import Malformed
from kinference.conformance.target import Target, missing
from kinference.errors import UpstreamUnreachable
from kinference.ids import Seconds

CASE_TIMEOUT: Seconds = 120.0
ATTEMPTS = 5
CONNECT_TIMEOUT: Seconds = 10.0


class Verdict(Enum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one case. `detail` says why it failed or was skipped."""

    case: Case
    verdict: Verdict
    detail: str = ""
    took: Seconds = 0.0


async def run_cases(target: Target, cases: Iterable[Case]) -> AsyncIterator[Result]:
    """The results as they come. Raises UpstreamUnreachable when nobody answers at the target."""
    await _reach(target)
    for case in cases:
        lacking = missing(case.needs, target)
        yield Result(case, Verdict.SKIPPED, f"needs {lacking}") if lacking else await run_case(target, case)


async def run_case(target: Target, case: Case) -> Result:
    """One case, whatever the server does with it."""
    began = time.monotonic()
    for _ in range(ATTEMPTS):
        try:
            detail = await _attempt(target, case)
        except Muddled:
            continue
        verdict = Verdict.FAILED if detail else Verdict.PASSED
        return Result(case, verdict, detail, time.monotonic() - began)
    return Result(case, Verdict.FAILED, "grpcio lost the status each time", time.monotonic() - began)


async def _attempt(target: Target, case: Case) -> str:
    """What was unexpected, "" for nothing."""
    try:
        async with asyncio.timeout(CASE_TIMEOUT), open_channel(target) as channel:
            client = Client(channel, target, Issued())
            try:
                await case.body(Probe(target, client))
            finally:
                await client.tidy()
    except ExceptionGroup as group:  # of calls at once: the first tells what was unexpected
        return _told(_first(group))
    except (Unexpected, Malformed, grpc.aio.AioRpcError, OSError) as error:
        return _told(error)
    return ""


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """The first of what calls at once came to; a lost status goes before all else, since the rest may be its doing."""
    found = group.subgroup(Muddled) or group
    first = found.exceptions[0]
    return _first(first) if isinstance(first, ExceptionGroup) else first


def _told(error: Exception) -> str:
    """Why the case failed. Raises what is not the server's doing."""
    match error:
        case Unexpected() | Malformed():
            return str(error)
        case grpc.aio.AioRpcError():
            return f"a call ended with {error.code().name}: {error.details()}"
        case TimeoutError():
            return f"not over after {CASE_TIMEOUT:g} seconds"
        case OSError():
            return f"the connection failed: {error}"
        case _:
            raise error


async def _reach(target: Target) -> None:
    async with open_channel(target) as channel:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await channel.channel_ready()
        except TimeoutError:
            check = "--tls-ca and the name in its certificate" if target.security.tls else "--tls if it speaks TLS"
            raise UpstreamUnreachable(
                f"no gRPC server answers at {target.address}; check the address, and {check}"
            ) from None

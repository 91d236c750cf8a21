import asyncio
from collections.abc import Awaitable, Callable

import pytest
from grpc import StatusCode

from kinference.conformance import runner
from kinference.conformance.case import Case, Probe
from kinference.conformance.claims import expect
from kinference.conformance.client import Muddled
from kinference.conformance.message import decode
from kinference.conformance.runner import Verdict, run_case, run_cases
from kinference.conformance.target import SHORT_TTL, Need, Security, Target
from kinference.errors import UpstreamUnreachable
from tests.conformance.serving import Served


def case_of(body: Callable[[Probe], Awaitable[None]], *needs: Need) -> Case:
    return Case("group.name", ("P1",), needs, body)


async def passes(probe: Probe) -> None:
    await probe.client.push(b"x")


async def fails(_probe: Probe) -> None:
    expect(False, "it did not")


async def meets_a_status(probe: Probe) -> None:
    await probe.client.pick(0)


async def meets_garbage(_probe: Probe) -> None:
    decode(b"\xff")


async def meets_a_closed_port(_probe: Probe) -> None:
    raise ConnectionError("hung up")


async def meets_a_status_at_once_with_others(probe: Probe) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(probe.client.pick(0))
        tasks.create_task(never_ends(probe))


async def never_ends(_probe: Probe) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (fails, "it did not"),
        (meets_a_status, StatusCode.INVALID_ARGUMENT.name),
        (meets_garbage, "does not end"),
        (meets_a_closed_port, "hung up"),
        (meets_a_status_at_once_with_others, StatusCode.INVALID_ARGUMENT.name),
    ],
)
async def test_whatever_the_server_does_is_a_failure_with_its_reason(
    server: Served, body: Callable[[Probe], Awaitable[None]], told: str
) -> None:
    result = await run_case(server.target, case_of(body))
    assert result.verdict is Verdict.FAILED
    assert told in result.detail


async def test_a_case_that_does_not_end_fails(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "CASE_TIMEOUT", 0.1)
    result = await run_case(server.target, case_of(never_ends))
    assert (result.verdict, result.detail) == (Verdict.FAILED, "not over after 0.1 seconds")


async def test_a_case_is_tried_again_when_the_library_lost_a_status(server: Served) -> None:
    attempts: list[Probe] = []

    async def muddled_at_first(probe: Probe) -> None:
        attempts.append(probe)
        if len(attempts) < 3:
            raise Muddled

    assert (await run_case(server.target, case_of(muddled_at_first))).verdict is Verdict.PASSED
    assert len(attempts) == 3


async def test_a_status_lost_among_calls_at_once_is_tried_again(server: Served) -> None:
    attempts: list[Probe] = []

    async def muddled_at_first(probe: Probe) -> None:
        attempts.append(probe)
        if len(attempts) < 2:
            errors = [ConnectionError("hung up"), ExceptionGroup("within", [Muddled()])]
            raise ExceptionGroup("at once", errors)

    assert (await run_case(server.target, case_of(muddled_at_first))).verdict is Verdict.PASSED
    assert len(attempts) == 2


async def test_a_fault_of_a_case_is_no_verdict(server: Served) -> None:
    async def is_wrong(_probe: Probe) -> None:
        raise ExceptionGroup("at once", [KeyError("ours")])

    with pytest.raises(KeyError, match="ours"):
        await run_case(server.target, case_of(is_wrong))


async def test_a_status_that_is_lost_each_time_is_a_failure(server: Served) -> None:
    async def muddled(_probe: Probe) -> None:
        raise Muddled

    result = await run_case(server.target, case_of(muddled))
    assert (result.verdict, result.detail) == (Verdict.FAILED, "grpcio lost the status each time")


async def test_cases_run_in_order_and_those_that_lack_something_are_skipped(server: Served) -> None:
    cases = [case_of(passes), case_of(passes, SHORT_TTL), case_of(fails)]
    results = [result async for result in run_cases(server.target, cases)]
    assert [result.verdict for result in results] == [Verdict.PASSED, Verdict.SKIPPED, Verdict.FAILED]
    assert results[1].detail == "needs --body-ttl under 10s"


async def test_what_a_case_leaves_is_handed_back_even_when_it_fails(server: Served) -> None:
    async def leaves(probe: Probe) -> None:
        await probe.client.push(b"x")
        expect(False, "broken off")

    await run_case(server.target, case_of(leaves))
    await server.wait_until_idle()


async def test_a_target_that_does_not_answer_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "CONNECT_TIMEOUT", 0.2)
    with pytest.raises(UpstreamUnreachable, match=r"no gRPC server answers at 127\.0\.0\.1:1"):
        [result async for result in run_cases(Target("127.0.0.1", 1), [case_of(passes)])]


async def test_a_target_over_tls_that_does_not_answer_is_not_told_to_use_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "CONNECT_TIMEOUT", 0.2)
    target = Target("127.0.0.1", 1, security=Security(tls=True))
    with pytest.raises(UpstreamUnreachable, match="--tls-ca"):
        [result async for result in run_cases(target, [case_of(passes)])]

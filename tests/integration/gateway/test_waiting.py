"""A saturated engine as the vendors' own clients meet it: they wait, are refused with a hint, or leave."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import anthropic
import openai
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion

from kinference.core.waiting import AdmissionRules
from kinference.picker.timer import ReclaimTimer
from kinference.sim.options import EngineOptions
from kinference.sim.serving import serve_engine
from tests.integration.gateway.harness import MODEL, MakeGateway, RealClock, Rig

LONG = 400_000
"""Characters of a prompt: ten seconds of work, as far as is known of the engine. The engine takes a tenth of that."""
PATIENCE = 60.0


class Held(RealClock):
    """Stands still until it is let go: an engine by it is at work until then, however long the others take to come."""

    def __init__(self) -> None:
        self._stopped_at, self._lost = super().now(), 0.0
        self._is_held = True

    def now(self) -> float:
        return self._stopped_at if self._is_held else super().now() - self._lost

    def let_go(self) -> None:
        if self._is_held:
            self._is_held, self._lost = False, super().now() - self._stopped_at


@asynccontextmanager
async def saturated(gateway: MakeGateway) -> AsyncIterator[tuple[Rig, "asyncio.Task[ChatCompletion]", Held]]:
    """A gateway in front of one engine that has all it can do, and goes on with it when its clock is let go."""
    options, clock = EngineOptions((MODEL,), speed=15.0, output_tokens=4), Held()
    async with serve_engine(options, clock) as engine, gateway(engine.port) as rig, asyncio.timeout(PATIENCE):
        first = asyncio.ensure_future(ask(rig, "a"))
        await until(lambda: sum(one.requests for one in rig.router.snapshot(0.0)) == 1)
        yield rig, first, clock
        clock.let_go()
        await first


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - a black box signals nothing
        await asyncio.sleep(0.005)


async def ask(rig: Rig, sign: str, size: int = LONG) -> ChatCompletion:
    async with AsyncOpenAI(base_url=f"http://127.0.0.1:{rig.port}/v1", api_key="any", max_retries=0) as client:
        return await client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": sign * size}])


async def test_requests_wait_until_the_engine_can_start_them(gateway: MakeGateway) -> None:
    async with saturated(gateway) as (rig, first, engine_clock):
        waiting = [asyncio.ensure_future(ask(rig, sign)) for sign in "bc"]
        await until(lambda: len(rig.desk.admission) == 2)
        engine_clock.let_go()
        answers = await asyncio.gather(first, *waiting)
        assert all(answer.choices for answer in answers)
        assert len(rig.desk.admission) == 0


async def test_a_client_that_leaves_waits_no_longer(gateway: MakeGateway) -> None:
    async with saturated(gateway) as (rig, _, _):
        leaving = asyncio.ensure_future(ask(rig, "b"))
        await until(lambda: len(rig.desk.admission) == 1)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        await until(lambda: len(rig.desk.admission) == 0)


async def test_a_full_line_is_told_in_the_clients_own_words_with_when_to_try_again(gateway: MakeGateway) -> None:
    async with saturated(gateway) as (rig, _, engine_clock):
        rig.desk.admission.reconfigure(replace(AdmissionRules(), waiting_max=1))
        waiting = asyncio.ensure_future(ask(rig, "b"))
        await until(lambda: len(rig.desk.admission) == 1)
        with pytest.raises(openai.RateLimitError, match="saturated: 1 requests wait already") as refused:
            await ask(rig, "c")
        assert int(refused.value.response.headers["retry-after"]) > 1
        async with AsyncAnthropic(base_url=f"http://127.0.0.1:{rig.port}", api_key="any", max_retries=0) as client:
            with pytest.raises(anthropic.RateLimitError, match="saturated: ") as refused_there:
                await client.messages.create(
                    model=MODEL, max_tokens=5, messages=[{"role": "user", "content": "d" * LONG}]
                )
        assert int(refused_there.value.response.headers["retry-after"]) > 1
        engine_clock.let_go()
        await waiting


async def test_those_that_wait_for_the_only_engine_outlive_its_restart(gateway: MakeGateway) -> None:
    """They were all sent after it as soon as what it had was lost, each to find out on its own that it is gone."""
    slow = EngineOptions((MODEL,), output_tokens=4)
    async with AsyncExitStack() as life, asyncio.timeout(3 * PATIENCE):
        engine = await life.enter_async_context(serve_engine(slow))
        async with gateway(engine.port) as rig, ticking(rig):
            asked = [asyncio.ensure_future(ask(rig, sign, 40_000)) for sign in "abcdefghijklmnopqrst"]
            await until(lambda: len(rig.desk.admission) >= 10)
            await life.aclose()
            await until(lambda: rig.router.snapshot(time.monotonic())[0].circuit != "closed")
            async with serve_engine(replace(slow, port=engine.port, speed=50.0)):
                answers = await asyncio.gather(*asked, return_exceptions=True)
    failed = [answer for answer in answers if isinstance(answer, BaseException)]
    assert len(failed) < len(asked) // 2, "what ran there, those who found out, and a trial or two"
    assert all(isinstance(answer, openai.APIStatusError) for answer in failed)


@asynccontextmanager
async def ticking(rig: Rig) -> AsyncIterator[None]:
    """What a running picker does when it is time."""
    timer = asyncio.ensure_future(ReclaimTimer(rig.desk, RealClock()).run())
    try:
        yield
    finally:
        timer.cancel()

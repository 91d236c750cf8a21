from random import Random

import msgspec
import pytest
from openai import AsyncOpenAI

from kinference.demo.conversations import Workload, conversations
from kinference.demo.report import Answer
from kinference.demo.traffic import Driver
from kinference.sim.options import EngineOptions
from kinference.sim.serving import serve_engine

SMALL = Workload(
    agents=1, sessions_per_agent=2, turns=2, system_words=40, question_words=20, answer_tokens=4, think_s=0.1
)


def printed(capsys: pytest.CaptureFixture[bytes]) -> list[Answer]:
    return [msgspec.json.decode(line, type=Answer) for line in capsys.readouterr().out.splitlines()]


async def test_every_turn_is_asked_and_told_with_what_was_cached(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    async with (
        serve_engine(EngineOptions(("demo",), speed=50)) as engine,
        AsyncOpenAI(base_url=f"{engine.url}/v1", api_key="x", max_retries=0) as client,
    ):
        await Driver(client, "demo", SMALL, speed=50).run(conversations(SMALL, Random(1)))
    answers = printed(capfdbinary)
    assert len(answers) == SMALL.requests
    assert not any(answer.error for answer in answers)
    assert all(answer.prompt_tokens > 0 and answer.ttft_ms > 0 for answer in answers)
    assert sum(answer.cached_tokens for answer in answers) > 0


async def test_a_failure_is_an_answer_too(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    async with (
        serve_engine(EngineOptions(("demo",), speed=50)) as engine,
        AsyncOpenAI(base_url=f"{engine.url}/v1", api_key="x", max_retries=0) as client,
    ):
        await Driver(client, "unknown", SMALL, speed=50).run(conversations(SMALL, Random(1)))
    answers = printed(capfdbinary)
    assert len(answers) == SMALL.requests
    assert all("NotFoundError" in answer.error for answer in answers)

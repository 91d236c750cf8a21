"""The demonstration's clients: the official `openai` package against the gateway, one `report.Answer` a line."""

import asyncio
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
from openai import AsyncOpenAI, OpenAIError
from openai.types.chat import ChatCompletionMessageParam

from kinference.demo.conversations import Session, Workload
from kinference.demo.report import Answer


@dataclass(frozen=True, slots=True)
class Driver:
    """Talks one model through one gateway, `speed` times faster than people would."""

    client: AsyncOpenAI
    model: str
    workload: Workload
    speed: float

    async def run(self, sessions: Iterable[Session]) -> None:
        """All sessions at once, each at its own pace."""
        async with asyncio.TaskGroup() as group:
            for session in sessions:
                group.create_task(self._converse(session))

    async def _converse(self, session: Session) -> None:
        messages: list[ChatCompletionMessageParam] = [{"role": "system", "content": session.system}]
        for question, pause in zip(session.questions, session.pauses, strict=True):
            await asyncio.sleep(pause / self.speed)
            messages.append({"role": "user", "content": question})
            try:
                answer, text = await self._ask(messages, session.name)
            except OpenAIError as error:
                answer, text = Answer("", 0.0, 0, 0, error=f"{type(error).__name__}: {error}"), "(no answer)"
            messages.append({"role": "assistant", "content": text})
            sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
            sys.stdout.buffer.flush()

    async def _ask(self, messages: list[ChatCompletionMessageParam], user: str) -> tuple[Answer, str]:
        asked = time.perf_counter()
        raw = await self.client.chat.completions.with_raw_response.create(
            model=self.model,
            messages=messages,
            max_tokens=self.workload.answer_tokens,
            user=user,
            stream=True,
            stream_options={"include_usage": True},
        )
        ttft_ms, prompt_tokens, cached_tokens, parts = 0.0, 0, 0, list[str]()
        async for chunk in raw.parse():
            if chunk.choices and chunk.choices[0].delta.content:
                ttft_ms = ttft_ms or (time.perf_counter() - asked) * 1000
                parts.append(chunk.choices[0].delta.content)
            if chunk.usage:
                prompt_tokens = chunk.usage.prompt_tokens
                details = chunk.usage.prompt_tokens_details
                cached_tokens = (details.cached_tokens or 0) if details else 0
        endpoint = raw.headers.get("x-kinference-endpoint", "unknown")
        return Answer(endpoint, ttft_ms, prompt_tokens, cached_tokens), "".join(parts)

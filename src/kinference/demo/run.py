"""Runs the demonstration: engines, every plane, traffic, the comparison, and then stays up to be tried by hand."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import msgspec
from rich.console import Console
from rich.live import Live

from kinference.config.load import from_engines
from kinference.demo.conversations import Workload
from kinference.demo.report import Answer, Scoreboard
from kinference.demo.table import comparison, live, progress_line
from kinference.runtime.service import Service, running
from kinference.runtime.signals import STOPPING, requested
from kinference.sim.options import EngineOptions
from kinference.sim.serving import serve_engine
from kinference.sim.timing import Timing

MODEL = "demo"
REFRESHES_PER_S = 8
LOG_EVERY = 20
"""Requests between two progress lines, where no live table can be drawn."""
SHOWN_ERRORS = 3
ENGINE = Timing(prefill_tokens_per_s=5_000, kv_blocks=4_000)
"""One simulated GPU: together three hold all conversations, one alone does not."""
BASELINE = "round_robin"
OURS = "expected_latency"


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What `kinference demo` can be told."""

    once: bool = False
    engines: int = 3
    speed: float = 4.0
    """Simulated seconds in one real second."""
    seed: int = 1
    workload: Workload = Workload()


@dataclass(frozen=True, slots=True)
class Demo:
    """One demonstration on one console."""

    options: DemoOptions
    console: Console

    async def run(self) -> int:
        """Both runs, then, unless told to end, serve until stopped. 0 when every request was answered."""
        async with AsyncExitStack() as stack:
            self._introduce()
            service = await stack.enter_async_context(self._stack(OURS))
            ours = await self._drive(service, OURS)
            async with self._stack(BASELINE) as other:
                theirs = await self._drive(other, BASELINE)
            self._conclude(ours, theirs)
            if not self.options.once:
                with requested(*STOPPING) as stop:
                    self._invite(service)
                    await stop.wait()
        return 1 if ours.errors or theirs.errors else 0

    @asynccontextmanager
    async def _stack(self, policy: str) -> AsyncIterator[Service]:
        """Fresh engines with empty caches, and all planes in front of them on free ports."""
        async with AsyncExitStack() as stack:
            engines = [
                await stack.enter_async_context(serve_engine(self._engine(number)))
                for number in range(self.options.engines)
            ]
            listen = {f"KINFERENCE_LISTEN_{plane}": "127.0.0.1:0" for plane in ("PICKER", "GATEWAY", "ADMIN")}
            routing = {"KINFERENCE_ROUTING_POLICY": policy, "KINFERENCE_ROUTING_SEED": str(self.options.seed)}
            config = from_engines([engine.url for engine in engines], listen | routing)
            yield await stack.enter_async_context(running(config))

    def _engine(self, number: int) -> EngineOptions:
        return EngineOptions((MODEL,), timing=ENGINE, speed=self.options.speed, seed=self.options.seed + number)

    async def _drive(self, service: Service, policy: str) -> Scoreboard:
        """Hold the workload's conversations in a process of its own and count the answers as they come."""
        board = Scoreboard(policy, self.options.workload.requests)
        await service.settled()
        async with _process(self._client_command(service)) as client:
            assert client.stdout is not None
            async with _shown(self.console, board, service):
                async for line in client.stdout:
                    board.add(msgspec.json.decode(line, type=Answer))
                    if not self.console.is_terminal and board.done % LOG_EVERY == 0:
                        self.console.print(progress_line(board), markup=False, highlight=False, soft_wrap=True)
            if await client.wait() != 0:
                board.errors.append("the client process failed; what it said of it is above")
        return board

    def _client_command(self, service: Service) -> Iterable[str]:
        flags = {
            "--base-url": f"http://127.0.0.1:{service.ports.gateway}/v1",
            "--model": MODEL,
            "--speed": str(self.options.speed),
            "--seed": str(self.options.seed),
            "--workload": msgspec.json.encode(self.options.workload).decode(),
        }
        return [sys.executable, "-m", "kinference.demo", *(word for flag in flags.items() for word in flag)]

    def _introduce(self) -> None:
        options, workload = self.options, self.options.workload
        self.console.print(
            f"{options.engines} simulated engines (time runs {options.speed:g}x), one gateway, and {workload.sessions} "
            f"conversations of {workload.turns} turns through the official openai client"
        )

    def _conclude(self, ours: Scoreboard, theirs: Scoreboard) -> None:
        self.console.print(comparison(ours, theirs))
        for error in (*ours.errors, *theirs.errors)[:SHOWN_ERRORS]:
            self.console.print(f"failed: {error}", style="red", markup=False)

    def _invite(self, service: Service) -> None:
        gateway, admin = (f"http://127.0.0.1:{port}" for port in (service.ports.gateway, service.ports.admin))
        body = f'{{"model": "{MODEL}", "stream": true, "messages": [{{"role": "user", "content": "Hello"}}]}}'
        lines = (
            "Still serving; Ctrl-C ends it. Try:",
            f"  curl -N {gateway}/v1/chat/completions -H 'content-type: application/json' -d '{body}'",
            f"  curl {gateway}/v1/models",
            f"  curl {admin}/api/v1/endpoints",
            f"  curl '{admin}/api/v1/decisions?limit=1'",
            f"  curl {admin}/metrics",
        )
        self.console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


@asynccontextmanager
async def _process(command: Iterable[str]) -> AsyncIterator[Process]:
    """A child that ends when the block does. In a process group of its own a Ctrl-C reaches us alone, and it leaves no
    trace on the screen.
    """
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, process_group=0)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def _shown(console: Console, board: Scoreboard, service: Service) -> AsyncIterator[None]:
    """Keep the table on the screen up to date; where there is no screen, leave it there at the end."""
    with Live(console=console, auto_refresh=False) as screen:
        async with asyncio.TaskGroup() as group:
            refreshing = group.create_task(_refresh(screen, board, service))
            yield
            refreshing.cancel()
        screen.update(live(board, service.in_flight()), refresh=True)


async def _refresh(screen: Live, board: Scoreboard, service: Service) -> None:
    while True:
        screen.update(live(board, service.in_flight()), refresh=True)
        await asyncio.sleep(1 / REFRESHES_PER_S)

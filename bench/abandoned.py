"""What callers abandon, and whether its memory comes back: uploads that nobody picks, picks that nobody pulls, pulls that
stall, all at once and over sockets; then the time that they may take, with no call made meanwhile.

    .venv/bin/python bench/abandoned.py                 # 10,000 uploads, 10,000 picks, 1,000 stalled pulls: 5 minutes
    .venv/bin/python bench/abandoned.py --scale 0.1 --ttl 20

Before the first figure the server has served ordinary flows, a hundred at a time as in the flood: whatever it loads and
fills once, it has then. What is measured is `kinference serve`, from /proc.
"""

import argparse
import asyncio
import json
import time
import urllib.request
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial

import uvloop
from memory import HoldingEngine, resident_mb, router  # type: ignore[import-not-found] # the script beside this one

from kinference.conformance.client import Client, Issued, open_channel
from kinference.conformance.http2 import framed, raw_connection
from kinference.conformance.message import encode
from kinference.conformance.target import Names, Target

AT_ONCE = 100
PULLS_A_CONNECTION = 100
WINDOW = 100
"""Bytes that a stalled puller takes, and then no more."""
UPLOADS, PICKS, PULLS = 10_000, 10_000, 1_000
WARM_FLOWS = 3_000
LATE = 15
"""Seconds: what is due is reclaimed some at a time."""


def prompt(number: int, words: int) -> bytes:
    """No two begin alike, so that none is cached."""
    asked = {"model": "bench", "messages": [{"role": "user", "content": f"{number} " + "hello world " * words}]}
    return json.dumps(asked).encode()


def body(number: int) -> bytes:
    """10 KB."""
    return prompt(number, 800)


async def many(act: Callable[[int], Awaitable[object]], numbers: range) -> None:
    for first in range(0, len(numbers), AT_ONCE):
        await asyncio.gather(*(act(number) for number in numbers[first : first + AT_ONCE]))


async def ordinary(client: Client, number: int) -> None:
    """A flow as it should be."""
    picked = await client.push_and_pick(body(number))
    await client.pull(picked.response_id)
    await client.first_token(picked.response_id)
    await client.final_token(picked.response_id)


async def choice(client: Client, asked: bytes) -> int:
    picked = await client.push_and_pick(asked)
    assert picked.response_id, picked.reason
    return picked.response_id


async def stall(client: Client, target: Target, count: int, open_ones: AsyncExitStack) -> None:
    """So many pulls of 200 KB that take a hundred bytes each."""
    for first in range(0, count, PULLS_A_CONNECTION):
        connection = await open_ones.enter_async_context(raw_connection(target, WINDOW))
        for number in range(first, min(count, first + PULLS_A_CONNECTION)):
            stream = connection.call("PullBody")
            connection.send(stream, framed(encode({1: await choice(client, prompt(number, 16_000))})), end=True)
            answer = connection.answer(stream)
            assert await connection.read_until(partial(bool, answer.data), 30)


def held_mb(admin_port: int) -> float:
    """Bytes of bodies, by the server's own account."""
    with urllib.request.urlopen(f"http://127.0.0.1:{admin_port}/metrics") as page:
        lines = page.read().decode().splitlines()
    return (
        next(float(line.split()[1]) for line in lines if line.startswith("kinference_picker_buffered_bytes ")) / 2**20
    )


async def measure(scale: float, ttl: int) -> None:
    engine = HoldingEngine()
    server = await asyncio.start_server(engine.serve, "127.0.0.1", 0)
    limits = {f"KINFERENCE_LIMITS_{name}": f"{ttl}s" for name in ("BODY_TTL", "TICKET_TTL", "STALLED_PULL_TTL")}
    async with AsyncExitStack() as stack:
        pid, ports = await stack.enter_async_context(router(server.sockets[0].getsockname()[1], limits))
        target = Target("127.0.0.1", ports["picker"], names=Names("bench", tenant=""))
        client = Client(await stack.enter_async_context(open_channel(target)), target, Issued())
        await many(lambda number: ordinary(client, number), range(10**6, 10**6 + WARM_FLOWS))
        await asyncio.sleep(LATE)
        start = told("start, after ordinary flows", pid)
        began = time.monotonic()
        uploads, picks, pulls = (int(count * scale) for count in (UPLOADS, PICKS, PULLS))
        await many(lambda number: client.push(body(number)), range(uploads))
        told(f"{uploads:,} uploads that nobody picks", pid, start)
        await many(lambda number: choice(client, body(number)), range(uploads, uploads + picks))
        told(f"{picks:,} picks that nobody pulls", pid, start)
        await stall(client, target, pulls, stack)
        told(f"{pulls:,} pulls that stall", pid, start)
        took = time.monotonic() - began
        held = await asyncio.to_thread(held_mb, ports["admin"])
        print(f"{took:.0f} s, {held:.0f} MB of bodies held; no call from here on", flush=True)
        assert took < ttl, "the first were reclaimed before the last had come: a longer --ttl, please"
        for _ in range(
            0, 2 * ttl + LATE, 15
        ):  # the bytes of a stalled pull go first, then it may be picked up once more
            await asyncio.sleep(15)
            told(f"{time.monotonic() - began:.0f} s", pid, start)
        assert await asyncio.to_thread(held_mb, ports["admin"]) == 0
    server.close()


def told(what: str, pid: int, start: float = 0) -> float:
    now = resident_mb(pid)
    print(f"{what:>34} {now:7.1f} MB" + (f" {now / start:6.2f}" if start else ""), flush=True)
    return float(now)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--ttl", type=int, default=60, metavar="SECONDS")
    options = parser.parse_args()
    uvloop.run(measure(options.scale, options.ttl))


if __name__ == "__main__":
    main()

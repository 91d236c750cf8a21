"""What a bad stream costs the others of its connection: how long a Pick takes beside a pull that stands still, a push that
drips, and a flood of chunks of one byte, against the same connection without.

The server is a process of its own; each round opens a connection for every row, in another order each time. A row sends
what is beside before each Pick, in the same write: for the flood, 64 chunks in frames of their own.

    .venv/bin/python bench/beside.py --rounds 5
"""

import argparse
import statistics
import time
from collections.abc import Awaitable, Callable
from random import Random

import uvloop
from picker import served  # type: ignore[import-not-found] # the script beside this one

from kinference.conformance.case import chat
from kinference.conformance.http2 import RawConnection, framed, raw_connection
from kinference.conformance.message import Fields, decode, encode, number
from kinference.conformance.target import MIB, Target

WINDOW = 4096
DRIP, BYTE = framed(encode({1: b"x" * 100})), framed(encode({1: b"x"}))
FLOOD = 64
BODY = chat("llama", "hello", 500)
LONG = chat("llama", "hello", MIB - 1000)
WARM_UP = 100

Beside = Callable[[], None]


def nothing() -> None:
    pass


async def unary(connection: RawConnection, method: str, message: bytes) -> Fields:
    stream = connection.call(method)
    connection.send(stream, framed(message), end=True)
    return decode(bytes((await connection.finished(stream)).data[5:]))


async def push(connection: RawConnection, body: bytes) -> int:
    stream = connection.call("PushBody")
    octets = framed(encode({1: body}))
    for at in range(0, len(octets), 16_384):
        connection.send(stream, octets[at : at + 16_384], end=at + 16_384 >= len(octets))
    return number(decode(bytes((await connection.finished(stream)).data[5:])), 1)


async def pick(connection: RawConnection, stream_id: int) -> int:
    return number(await unary(connection, "Pick", encode({1: stream_id, 5: b"acme"})), 3)


async def calm(_connection: RawConnection) -> Beside:
    return nothing


async def stalled_pull(connection: RawConnection) -> Beside:
    response_id = await pick(connection, await push(connection, LONG))
    stream = connection.call("PullBody")
    connection.send(stream, framed(encode({1: response_id})), end=True)
    await connection.read_until(lambda: len(connection.answer(stream).data) >= WINDOW, 10)
    return nothing


async def slow_push(connection: RawConnection) -> Beside:
    stream = connection.call("PushBody")
    return lambda: connection.send(stream, DRIP, end=False)


async def flood(connection: RawConnection) -> Beside:
    stream = connection.call("PushBody")

    def send() -> None:
        for _ in range(FLOOD):
            connection.send(stream, BYTE, end=False)

    return send


async def all_three(connection: RawConnection) -> Beside:
    besides = [await each(connection) for each in (stalled_pull, slow_push, flood)]

    def send() -> None:
        for beside in besides:
            beside()

    return send


ROWS: dict[str, Callable[[RawConnection], Awaitable[Beside]]] = {
    "nothing": calm,
    "a stalled pull": stalled_pull,
    "a slow push": slow_push,
    "a flood of one-byte chunks": flood,
    "all three": all_three,
}


async def measure(port: int, prepare: Callable[[RawConnection], Awaitable[Beside]], picks: int) -> list[float]:
    """Milliseconds of each Pick, from its first byte written to its last byte read."""
    taken = []
    async with raw_connection(Target("127.0.0.1", port), WINDOW) as connection:
        await push(connection, b"")
        connection.open_window(1, 2**30)  # of the connection: that stream has ended
        beside = await prepare(connection)
        for count in range(WARM_UP + picks):
            stream_id = await push(connection, BODY)
            began = time.perf_counter()
            beside()
            response_id = await pick(connection, stream_id)
            if count >= WARM_UP:
                taken.append((time.perf_counter() - began) * 1000)
            await unary(connection, "Abort", encode({1: response_id, 2: 1}))
    return taken


async def run(rounds: int, picks: int) -> None:
    cuts: dict[str, list[list[float]]] = {name: [] for name in ROWS}
    order, random = list(ROWS), Random(1)
    with served("own", "full") as (_, port):
        for _ in range(rounds):
            random.shuffle(order)
            for name in order:
                cuts[name].append(statistics.quantiles(await measure(port, ROWS[name], picks), n=100))
    calm_p50, calm_p99 = (statistics.median(each[at] for each in cuts["nothing"]) for at in (49, 98))
    for name, found in cuts.items():
        p50, p99 = (statistics.median(each[at] for each in found) for at in (49, 98))
        print(f"{name:27} p50 {p50:.2f} ms ({p50 / calm_p50:.2f} x)  p99 {p99:.2f} ms ({p99 / calm_p99:.2f} x)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--picks", type=int, default=1000)
    options = parser.parse_args()
    uvloop.run(run(options.rounds, options.picks))


if __name__ == "__main__":
    main()

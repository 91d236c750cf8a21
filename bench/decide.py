"""How long one decision takes: hashing, candidates, cost, pick and commit, the whole synchronous part of a Pick.

The tenth percentile is the figure to compare by on a machine that other work shares.
"""

import argparse
import gc
import sys
from random import Random
from statistics import quantiles
from time import perf_counter_ns

from kinference.core.fleet import EndpointSpec, Fleet, Observation
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules
from kinference.core.request import Request
from kinference.ids import Address, ObjectRef, ReservationId
from kinference.vocabulary import Api

MODEL = "m"
POOL = ObjectRef("default", "pool")


def make_router(endpoints: int, foreign: int, seed: int) -> Router:
    """A router over a pool of ready engines with room for a million tokens each, and requests of others on them."""
    fleet = Fleet()
    addresses = [Address(f"10.0.{number // 256}.{number % 256}:8000") for number in range(endpoints)]
    fleet.set_pool(POOL, [EndpointSpec(POOL, address, models=(MODEL,)) for address in addresses])
    for address in addresses:
        fleet.set_ready(POOL, address, ready=True)
        fleet.observe(POOL, address, Observation(0.0, 0, foreign, 0.5, kv_blocks=65_536, block_tokens=16))
    return Router(fleet, RoutingRules(), Random(seed))


def make_request(rng: Random, shared: bytes, prompt_bytes: int) -> Request:
    """A prompt that starts with what others have sent and goes on with something new."""
    own = rng.randbytes(prompt_bytes - len(shared))
    return Request(MODEL, Api.OPENAI_CHAT, (shared[:1000], shared[1000:], own), prompt_bytes, output_tokens=256)


def measure(endpoints: int, options: argparse.Namespace) -> list[float]:
    """Microseconds of each decision. Conversations go on in flight, and end a hundred decisions later."""
    rng = Random(options.seed)
    router = make_router(endpoints, options.foreign, options.seed)
    prompt_bytes = int(options.prompt_tokens * 4)
    heads = [rng.randbytes(int(prompt_bytes * options.hit)) for _ in range(options.prefixes)]
    in_flight: list[ReservationId] = []
    times = []
    for number in range(options.warmup + options.decisions):
        now = number * 0.01
        request = make_request(rng, heads[rng.randrange(len(heads))], prompt_bytes)
        start = perf_counter_ns()
        decision = router.decide(request, now)
        if number >= options.warmup:
            times.append((perf_counter_ns() - start) / 1_000)
        in_flight.append(decision.reservation)
        if len(in_flight) > options.in_flight:
            done = in_flight.pop(0)
            router.first_token(done, 100.0 + rng.random(), 200, now)
            router.final_token(done, options.prompt_tokens, 200, None, now)
    return times


def main() -> int:
    """Measure each fleet size and print a table; exit 1 when --limit-us is given and a median is over it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoints", type=int, nargs="+", default=[8, 64, 512], help="fleet sizes")
    parser.add_argument("--prompt-tokens", type=int, default=8_192, help="prompt length, 4 bytes a token")
    parser.add_argument("--hit", type=float, default=0.6, help="share of the prompt that is known")
    parser.add_argument("--prefixes", type=int, default=32, help="different known prefixes")
    parser.add_argument("--decisions", type=int, default=2_000, help="decisions measured")
    parser.add_argument("--warmup", type=int, default=500, help="decisions before that")
    parser.add_argument("--in-flight", type=int, default=100, help="requests in flight")
    parser.add_argument("--foreign", type=int, default=0, help="requests of other routers on each endpoint")
    parser.add_argument("--seed", type=int, default=1, help="of prompts and ties")
    parser.add_argument("--limit-us", type=float, help="fail when a median is over this")
    options = parser.parse_args()
    gc.freeze()
    over = False
    print(f"{'endpoints':>9} {'p10 us':>8} {'p50 us':>8} {'p99 us':>8}")
    for endpoints in options.endpoints:
        cuts = quantiles(measure(endpoints, options), n=100)
        print(f"{endpoints:>9} {cuts[9]:>8.1f} {cuts[49]:>8.1f} {cuts[98]:>8.1f}")
        over = over or (options.limit_us is not None and cuts[49] > options.limit_us)
    return int(over)


if __name__ == "__main__":
    sys.exit(main())

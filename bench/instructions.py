"""How many instructions the picker executes for a request: its decision, its two reports, and what counts them.

Instructions, as valgrind counts them, are the same in every run, whatever else the machine does. What a process needs to
start is taken off: it is counted for few requests and for many. `core` is admission and the router alone, from a request
to its final report; `picker` is what the gateway calls, with the body read and the ticket kept.

    .venv/bin/python bench/instructions.py -- .venv/bin/python .native/bin/python
"""

import argparse
import os
import subprocess
import sys
from collections import deque
from random import Random

from kinference.core.admission import Admission
from kinference.core.decision import Decision
from kinference.core.fleet import EndpointSpec, Fleet, Observation
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules
from kinference.core.request import Request
from kinference.core.waiting import AdmissionRules
from kinference.ids import Address, ObjectRef, ReservationId, ResponseId, Seconds, StreamId
from kinference.observe.metrics import Metrics
from kinference.picker.desk import Desk
from kinference.picker.inprocess import InProcessPicker
from kinference.picker.limits import PickerLimits
from kinference.ports import FinalTokenReport, FirstTokenReport, PickArguments, Placed
from kinference.vocabulary import Api

MODEL = "m"
POOL = ObjectRef("default", "pool")
STEP_S = 0.01
TTFT_MS = 25
TOLD_AFTER = 3
"""So many requests later the first token of one is reported."""
IN_FLIGHT = 64
CACHED = 128
"""Tokens of a KiB of prompt that the engine had."""
FEW, MANY = 200, 700


class StepClock:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.at: Seconds = 1_000.0

    def now(self) -> Seconds:
        return self.at

    def wall(self) -> Seconds:
        return self.at


def make_router(endpoints: int) -> Router:
    """Over a pool of ready engines that tell of themselves."""
    fleet = Fleet()
    addresses = [Address(f"10.0.0.{number}:8000") for number in range(endpoints)]
    fleet.set_pool(POOL, [EndpointSpec(POOL, address, models=(MODEL,)) for address in addresses])
    for address in addresses:
        fleet.set_ready(POOL, address, ready=True)
        fleet.observe(POOL, address, Observation(1_000.0, 0, 0, 0.5, kv_blocks=65_536, block_tokens=16))
    return Router(fleet, RoutingRules(), Random(1))


def core(endpoints: int, kib: int, count: int) -> None:
    """Decisions and reports of requests that begin in one of eight ways and end in a way of their own."""
    router, rng, clock = make_router(endpoints), Random(1), StepClock()
    admission = Admission(router, AdmissionRules())
    heads = [rng.randbytes(kib * 640) for _ in range(8)]
    begun: deque[ReservationId] = deque()
    for number in range(count):
        clock.at += STEP_S
        own = rng.randbytes(kib * 384)
        request = Request(MODEL, Api.OPENAI_CHAT, (heads[number % 8], own), kib * 1_024, 256)
        decision = admission.admit(request, clock.at)
        assert isinstance(decision, Decision)
        begun.append(decision.reservation)
        if number >= TOLD_AFTER:
            router.first_token(begun[-1 - TOLD_AFTER], TTFT_MS, 200, clock.at)
        if len(begun) > IN_FLIGHT:
            router.final_token(begun.popleft(), kib * 256, 64, kib * CACHED, clock.at)


def picker(endpoints: int, kib: int, count: int) -> None:
    """The same by the calls that the gateway makes."""
    clock = StepClock()
    desk = InProcessPicker(Desk(make_router(endpoints), PickerLimits(), clock, Metrics(), Random(1)))
    heads = [f"{number:0{kib * 640}}" for number in range(8)]
    arguments = PickArguments(StreamId(0), "", "request", POOL, request_path="/v1/chat/completions", translates=True)
    begun: deque[ResponseId] = deque()
    for number in range(count):
        clock.at += STEP_S
        text = heads[number % 8] + f"{number:0{kib * 384 - 60}}"
        body = b'{"model":"m","messages":[{"role":"user","content":"%s"}]}' % text.encode()
        placed = desk.place(body, arguments)
        assert isinstance(placed, Placed)
        begun.append(placed.picked.response_id)
        if number >= TOLD_AFTER:
            desk.report_first_token(FirstTokenReport(begun[-1 - TOLD_AFTER], TTFT_MS, 200))
        if len(begun) > IN_FLIGHT:
            desk.report_final_token(FinalTokenReport(begun.popleft(), MODEL, kib * 256, 64, kib * CACHED))


KINDS = {"core": core, "picker": picker}


def counted(python: str, kind: str, endpoints: int, kib: int) -> float:
    """Thousands of instructions a request."""
    counts = []
    for requests in (FEW, MANY):
        run = [python, __file__, "--run", kind, str(endpoints), str(kib), str(requests)]
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *run]
        environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        told = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stderr
        counts.append(int(next(line for line in told.splitlines() if "Collected" in line).split()[-1]))
    return (counts[1] - counts[0]) / (MANY - FEW) / 1e3


def main() -> int:
    """Count for each Python and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pythons", nargs="*", default=[sys.executable], help="of environments with kinference in them")
    parser.add_argument("--endpoints", type=int, nargs="+", default=[1, 4, 16], help="fleet sizes")
    parser.add_argument("--kib", type=int, default=1, help="size of a prompt")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="what is counted")
    parser.add_argument("--run", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        kind, *numbers = options.run
        KINDS[kind](*map(int, numbers))
        return 0
    print(f"{'thousands of instructions a request':>36}", *(f"{python[-24:]:>24}" for python in options.pythons))
    for kind in options.kinds:
        for endpoints in options.endpoints:
            figures = [counted(python, kind, endpoints, options.kib) for python in options.pythons]
            print(f"{kind:>20} of {endpoints:>3} endpoints", *(f"{figure:>24.1f}" for figure in figures), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

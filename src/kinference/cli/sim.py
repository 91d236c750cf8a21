"""`kinference sim`: one simulated engine on a port, until a signal stops it."""

import argparse
import asyncio
import signal
import sys
from typing import TYPE_CHECKING

from kinference.errors import KinferenceError
from kinference.runtime.clock import SystemClock
from kinference.sim.faults import Fault, parse_fault
from kinference.sim.options import EngineOptions, KvEventOptions
from kinference.sim.serving import RunningEngine, serve_engine
from kinference.sim.timing import Timing

if TYPE_CHECKING:
    _Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - argparse has no public name for it

DESCRIPTION = """\
Runs one simulated engine that answers as vLLM does: chat, completions, responses, embeddings, messages, streaming,
metrics, KV events. It keeps a real block-level prefix cache and takes as long as an engine with these rates would;
--speed 50 makes its time pass 50 times faster. What it says is made up.
"""

EPILOG = """\
example:
  kinference sim --port 8000 --model llama-3.1-8b --prefill-rate 16000 --decode-ms 8
  curl http://127.0.0.1:8000/v1/models

faults, while it runs (kinds: refuse, hang, status, cut, slow):
  curl http://127.0.0.1:8000/sim/faults -d '{"kind": "status", "status": 429, "retry_after": 2, "count": 5}'
  curl -X DELETE http://127.0.0.1:8000/sim/faults
"""


def add(subparsers: "_Subparsers") -> None:
    """Declare the verb and its flags."""
    verb = subparsers.add_parser(
        "sim",
        help="run a simulated engine",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    timing, engine = Timing(), EngineOptions(models=("m",))
    verb.add_argument("--model", action="append", required=True, metavar="NAME", help="model name; again for an alias")
    verb.add_argument("--host", default=engine.host, help="address to listen on (%(default)s)")
    verb.add_argument("--port", type=int, default=0, help="port to listen on; 0, the default, picks a free one")
    rates = verb.add_argument_group("how fast it is")
    rates.add_argument("--speed", type=float, default=engine.speed, help="simulated seconds per second (%(default)s)")
    rates.add_argument(
        "--prefill-rate", type=float, default=timing.prefill_tokens_per_s, help="prompt tokens per second (%(default)s)"
    )
    rates.add_argument("--decode-ms", type=float, default=timing.decode_ms, help="ms of one decode step (%(default)s)")
    size = verb.add_argument_group("how much it takes")
    size.add_argument("--max-num-seqs", type=int, default=timing.sequences_max, help="largest batch (%(default)s)")
    size.add_argument(
        "--max-num-batched-tokens", type=int, default=timing.batched_tokens_max, help="tokens of a step (%(default)s)"
    )
    size.add_argument("--kv-blocks", type=int, default=timing.kv_blocks, help="blocks of KV cache (%(default)s)")
    size.add_argument("--block-size", type=int, default=timing.block_tokens, help="tokens of a block (%(default)s)")
    size.add_argument(
        "--max-model-len", type=int, default=engine.context_tokens_max, help="longest request in tokens (%(default)s)"
    )
    says = verb.add_argument_group("what it says")
    says.add_argument(
        "--output-tokens", type=int, default=engine.output_tokens, help="length of an answer (%(default)s)"
    )
    says.add_argument("--seed", type=int, default=engine.seed, help="of block hashes and faults (%(default)s)")
    says.add_argument("--fault", metavar="JSON", help="a fault from the start, as POST /sim/faults takes it")
    events = verb.add_argument_group("KV events")
    events.add_argument("--kv-events-endpoint", default="", metavar="ZMQ", help="publish there, tcp://127.0.0.1:5557")
    events.add_argument("--kv-replay-endpoint", default="", metavar="ZMQ", help="replay there, tcp://127.0.0.1:5558")
    events.add_argument("--kv-topic", default="", metavar="TOPIC", help="topic of the events (none)")
    events.add_argument("--kv-positional", action="store_true", help="events as arrays, as older engines sent them")
    verb.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    try:
        options = _options(args)
    except ValueError as error:
        print(f"kinference sim: {error}", file=sys.stderr)
        return 2
    try:
        asyncio.run(_serve(options))
    except OSError as error:
        raise KinferenceError(f"cannot listen: {error.strerror or error}") from None
    return 0


def _options(args: argparse.Namespace) -> EngineOptions:
    return EngineOptions(
        models=tuple(args.model),
        host=args.host,
        port=args.port,
        timing=Timing(
            prefill_tokens_per_s=args.prefill_rate,
            decode_ms=args.decode_ms,
            batched_tokens_max=args.max_num_batched_tokens,
            sequences_max=args.max_num_seqs,
            kv_blocks=args.kv_blocks,
            block_tokens=args.block_size,
        ),
        speed=args.speed,
        output_tokens=args.output_tokens,
        context_tokens_max=args.max_model_len,
        seed=args.seed,
        kv_events=KvEventOptions(
            args.kv_events_endpoint, args.kv_replay_endpoint, args.kv_topic, positional=args.kv_positional
        ),
        fault=_fault(args.fault),
    )


def _fault(text: str | None) -> Fault | None:
    if text is None:
        return None
    try:
        return parse_fault(text.encode())
    except ValueError as error:
        raise ValueError(f"--fault: {error}") from None


async def _serve(options: EngineOptions) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with serve_engine(options, SystemClock()) as running:
        _announce(running)
        await stop.wait()


def _announce(running: RunningEngine) -> None:
    names = ", ".join(running.engine.options.models)
    print(f"kinference sim: model {names} on {running.url}", flush=True)
    if running.kv_events_endpoint:
        print(f"kinference sim: KV events on {running.kv_events_endpoint}", flush=True)
    if running.kv_replay_endpoint:
        print(f"kinference sim: KV replay on {running.kv_replay_endpoint}", flush=True)

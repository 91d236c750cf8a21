"""`kinference sim`: one simulated engine on a port, until a signal stops it."""

import argparse
import asyncio
import signal
import sys

import uvloop

from kinference.cli.arguments import Verbs, at_least_one, positive
from kinference.errors import KinferenceError
from kinference.runtime.clock import SystemClock
from kinference.sim.faults import Fault, parse_fault
from kinference.sim.options import EngineOptions, KvEventOptions
from kinference.sim.serving import RunningEngine, serve_engine
from kinference.sim.timing import Timing

PORT_MAX = 65_535
DESCRIPTION = """\
Runs one simulated engine that answers as vLLM does: chat, completions, responses, embeddings, messages, streaming,
metrics, KV events. It keeps a real block-level prefix cache and takes as long as an engine with these rates would;
--speed 50 makes its time pass 50 times faster. What it says is made up.
"""

EXAMPLE = """\
example:
  kinference sim --port 8000 --model llama-3.1-8b --prefill-rate 16000 --decode-ms 8
  curl http://127.0.0.1:8000/v1/models

faults, while it runs (kinds: refuse, hang, status, cut, slow):
  curl http://127.0.0.1:8000/sim/faults -d '{"kind": "status", "status": 429, "retry_after": 2, "count": 5}'
  curl -X DELETE http://127.0.0.1:8000/sim/faults
"""


def add(verbs: Verbs) -> None:
    """Declare the verb and its flags."""
    parser = verbs.add_parser(
        "sim",
        help="run a simulated engine",
        description=DESCRIPTION,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--model", action="append", required=True, metavar="NAME", help="its name; again for an alias")
    parser.add_argument("--host", default=EngineOptions(("m",)).host, help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=_port, default=0, metavar="P", help="port to listen on; 0, the default: any")
    _add_rates(parser.add_argument_group("how fast it is"))
    _add_sizes(parser.add_argument_group("how much it takes"))
    _add_speech(parser.add_argument_group("what it says, and what goes wrong"))
    _add_events(parser.add_argument_group("KV events, off unless an endpoint is given"))
    parser.set_defaults(run=run)


def _add_rates(group: argparse._ArgumentGroup) -> None:
    timing = Timing()
    group.add_argument("--speed", type=positive, default=1.0, metavar="X", help="simulated seconds a second (1)")
    group.add_argument(
        "--prefill-rate",
        type=positive,
        default=timing.prefill_tokens_per_s,
        metavar="TOKENS",
        help="prompt tokens a second (%(default)g)",
    )
    group.add_argument(
        "--decode-ms", type=positive, default=timing.decode_ms, metavar="MS", help="one decode step (%(default)g)"
    )


def _add_sizes(group: argparse._ArgumentGroup) -> None:
    timing = Timing()
    sizes = (
        ("--max-num-seqs", timing.sequences_max, "requests in the batch"),
        ("--max-num-batched-tokens", timing.batched_tokens_max, "tokens in a step"),
        ("--kv-blocks", timing.kv_blocks, "blocks of KV cache"),
        ("--block-size", timing.block_tokens, "tokens in a block"),
        ("--max-model-len", EngineOptions(("m",)).context_tokens_max, "tokens of the longest request"),
    )
    for flag, default, text in sizes:
        group.add_argument(flag, type=at_least_one, default=default, metavar="N", help=f"{text} (%(default)s)")


def _add_speech(group: argparse._ArgumentGroup) -> None:
    options = EngineOptions(("m",))
    group.add_argument(
        "--output-tokens",
        type=at_least_one,
        default=options.output_tokens,
        metavar="N",
        help="length of an answer (%(default)s)",
    )
    group.add_argument("--seed", type=int, default=options.seed, metavar="N", help="of block hashes and faults (0)")
    group.add_argument("--fault", metavar="JSON", help="a fault from the start, as POST /sim/faults takes it")


def _add_events(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--kv-events-endpoint", default="", metavar="ZMQ", help="publish there: tcp://127.0.0.1:5557")
    group.add_argument("--kv-replay-endpoint", default="", metavar="ZMQ", help="replay there: tcp://127.0.0.1:5558")
    group.add_argument("--kv-topic", default="", metavar="TOPIC", help="their topic (none)")
    group.add_argument("--kv-positional", action="store_true", help="events as arrays, as older engines send them")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= PORT_MAX):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, 0 to {PORT_MAX}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    try:
        options = _options(args)
    except ValueError as error:
        print(f"kinference sim: {error}", file=sys.stderr)
        return 2
    try:
        uvloop.run(_serve(options))
    except OSError as error:
        raise KinferenceError(f"cannot listen: {error.strerror}") from None
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

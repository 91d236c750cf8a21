"""`kinference demo`: see requests being routed, on one machine and without a GPU."""

import argparse
import asyncio

from rich.console import Console

from kinference.cli.arguments import Verbs, at_least_one, positive
from kinference.demo.run import Demo, DemoOptions
from kinference.observe.logs import LogFormat, configure_logs

EXAMPLE = """\
example:
  kinference demo            watch the table, then try the curl lines that it prints
  kinference demo --once     the same, and end after the comparison
"""


def add(verbs: Verbs) -> None:
    """Declare the verb and its flags."""
    parser = verbs.add_parser(
        "demo",
        help="three simulated engines, real clients, a live table",
        description="Start simulated engines and every plane, send multi-turn chats through the gateway with the "
        "official openai client, and compare with round robin on the same traffic.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--once", action="store_true", help="end after the comparison instead of serving on")
    parser.add_argument("--engines", type=at_least_one, default=3, metavar="N", help="simulated engines (default 3)")
    parser.add_argument(
        "--speed", type=positive, default=4.0, metavar="X", help="simulated seconds in a real one (default 4)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the traffic and the tie-breaker")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run it on this terminal."""
    configure_logs(LogFormat.TEXT, "warning")
    options = DemoOptions(once=args.once, engines=args.engines, speed=args.speed, seed=args.seed)
    # uvloop starts child processes by a plain fork, of which grpcio complains on stderr each time
    return asyncio.run(Demo(options, Console()).run())

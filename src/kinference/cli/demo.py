"""`kinference demo`: see requests being routed, on one machine and without a GPU."""

import argparse
import asyncio
from importlib.util import find_spec

from rich.console import Console

from kinference.cli.arguments import Verbs, at_least_one, positive
from kinference.demo.run import Demo, DemoOptions
from kinference.errors import KinferenceError
from kinference.observe.logs import LogFormat, configure_logs

DESCRIPTION = """\
Starts simulated engines and every plane, sends multi-turn chats through the gateway with the official openai client
(pip install openai), and compares with round robin on the same traffic.
"""

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
        description=DESCRIPTION,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--once", action="store_true", help="end after the comparison instead of serving on")
    parser.add_argument("--engines", type=at_least_one, default=3, metavar="N", help="simulated engines (3)")
    parser.add_argument("--speed", type=positive, default=4.0, metavar="X", help="simulated seconds a second (4)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the traffic and the tie-breaker (1)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run it on this terminal."""
    if find_spec("openai") is None:
        raise KinferenceError("the demo's clients are the openai package, which is not installed: pip install openai")
    configure_logs(LogFormat.TEXT, "warning")
    options = DemoOptions(once=args.once, engines=args.engines, speed=args.speed, seed=args.seed)
    # uvloop starts child processes by a plain fork, of which grpcio complains on stderr each time
    return asyncio.run(Demo(options, Console()).run())

"""`kinference VERB ...`: exit codes 0 done, 1 refused or failed, 2 usage."""

import argparse
import sys
from collections.abc import Sequence

from kinference import __version__
from kinference.cli import (
    config,
    conformance,
    demo,
    endpoint,
    explain,
    provider,
    route,
    sandbox_router,
    serve,
    sim,
    simulate,
    store,
)
from kinference.core import pick
from kinference.errors import KinferenceError

VERBS = (serve, demo, sim, simulate, explain, endpoint, provider, route, store, sandbox_router, config, conformance)

BUILD = "" if str(pick.__file__).endswith(".py") else " (compiled)"
"""What the decision core was loaded from."""

EPILOG = """\
start here:
  kinference demo                            three simulated engines, real traffic, a live table
  kinference serve --engine http://host:8000 route to your own engine, no file needed
  kinference serve --config kinference.yaml  everything else
"""


def parser() -> argparse.ArgumentParser:
    """The whole command line, so that documentation and tests can walk it."""
    root = argparse.ArgumentParser(
        prog="kinference",
        description="Routes LLM inference requests to the model and destination that will serve them best.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=f"kinference {__version__}{BUILD}")
    verbs = root.add_subparsers(title="verbs", metavar="VERB", dest="verb", required=True)
    for verb in VERBS:
        verb.add(verbs)
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb. A failure that we foresaw is one line on stderr; anything else is a bug and shows its trace."""
    args = parser().parse_args(argv)
    try:
        status: int = args.run(args)
    except KinferenceError as error:
        print(f"kinference: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return status

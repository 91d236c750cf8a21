"""`kinference endpoint`: the engines that a running kinference routes to, and taking one out of use for a while."""

import argparse
import time
from collections.abc import Iterable, Sequence

from kinference.cli.admin_api import AdminApi, Json, Refused, add_common, admin_api, named, shown_json
from kinference.cli.arguments import Verbs, positive
from kinference.ids import Seconds

PATH = "/api/v1/endpoints"
POLL_S: Seconds = 0.25
HEAD = ("ADDRESS", "POOL", "STATE", "IN FLIGHT", "WAITING", "RUNNING", "MODELS")

EXAMPLE = """\
A draining endpoint finishes what it has and takes nothing new; who waited for it goes elsewhere. The drain lasts until
it is ended, the endpoint leaves its pool or kinference restarts.

examples:
  kinference endpoint list
  kinference endpoint drain 10.0.0.7:8000 --wait 600 && systemctl restart vllm
  kinference endpoint undrain 10.0.0.7:8000
"""


def add(verbs: Verbs) -> None:
    """Declare the verb and its sub-verbs."""
    parser = verbs.add_parser(
        "endpoint",
        help="list endpoints, take one out of use, and back",
        description="Endpoints of a running kinference.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    inner = parser.add_subparsers(dest="endpoint_verb", required=True, metavar="VERB")
    inner.add_parser("list", help="show all endpoints and backends")
    drain = inner.add_parser("drain", help="let it finish what it has and take nothing new")
    drain.add_argument("--wait", type=positive, metavar="N", help="seconds to wait until nothing is in flight there")
    for each in (drain, inner.add_parser("undrain", help="take new requests again")):
        each.add_argument("address", metavar="ADDRESS", help="HOST:PORT, as `list` shows it")
        each.add_argument("--pool", metavar="NAMESPACE/NAME", default="", help="absent: every pool that has it")
    for each in inner.choices.values():
        add_common(each)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do one sub-verb."""
    api = admin_api(args)
    if args.endpoint_verb == "list":
        answer = api.ask("GET", PATH)
    else:
        body = {"draining": args.endpoint_verb == "drain", "pool": args.pool}
        answer = api.ask("PATCH", named("endpoints", args.address), body)
        if args.endpoint_verb == "drain" and args.wait is not None:
            answer = _drained(api, answer["endpoints"], args.wait)
    print(shown_json(answer) if args.output == "json" else "\n".join(_table(answer["endpoints"])))
    return 0


def _drained(api: AdminApi, draining: Sequence[Json], patience: Seconds) -> Json:
    """Wait until nothing is in flight there. One that has left its pool has nothing."""
    places = {(row["pool"], row["address"]) for row in draining}
    deadline = time.monotonic() + patience
    while True:
        found = [row for row in api.ask("GET", PATH)["endpoints"] if (row["pool"], row["address"]) in places]
        left = sum(row["requests"] for row in found)
        if not left:
            return {"endpoints": found}
        if time.monotonic() >= deadline:
            raise Refused(
                "DEADLINE_EXCEEDED", f"{left} requests are still in flight after {patience:g} s; it goes on draining"
            )
        time.sleep(POLL_S)


def _table(endpoints: Sequence[Json]) -> Iterable[str]:
    rows = [HEAD, *map(_row, endpoints)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEAD))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(endpoint: Json) -> tuple[str, ...]:
    counts = [endpoint["requests"], endpoint["waiting"], endpoint["running"]]
    models = ",".join(endpoint["models"])
    return (
        endpoint["address"] or "backend",
        endpoint["pool"],
        _state(endpoint),
        *("-" if count is None else str(count) for count in counts),
        models,
    )


def _state(endpoint: Json) -> str:
    if endpoint["draining"]:
        return "draining" if endpoint["requests"] else "drained"
    if not endpoint["ready"]:
        return "not ready"
    return "ready" if endpoint["circuit"] == "closed" else f"circuit {endpoint['circuit']}".replace("_", " ")

"""`kinference route`: where requests for `inference.local` lead, with the flags and words of `openshell inference`."""

import argparse
from collections.abc import Iterable
from urllib.parse import urlencode

from kinference.cli.admin_api import AdminApi, Json, Refused, add_common, admin_api, named, shown_json
from kinference.cli.arguments import Verbs
from kinference.config.values import DEFAULT_WORKSPACE

USER_ROUTE, SYSTEM_ROUTE = "inference.local", "sandbox-system"
TITLES = {USER_ROUTE: "Gateway inference", SYSTEM_ROUTE: "System inference"}
"""A further route is titled by its name."""

EXAMPLE = """\
examples:
  kinference route set --provider openai --model gpt-5-mini
  kinference route update --model gpt-5
  kinference route set --route claude --provider anthropic --model claude-sonnet-4-5
  kinference route set --workspace team-a --sandbox 7f3a --provider anthropic --model claude-haiku-4-5
  kinference route get --output json
"""


def add(verbs: Verbs) -> None:
    """Declare the verb and its sub-verbs."""
    parser = verbs.add_parser(
        "route",
        help="set, show, change or delete inference routes",
        description="Inference routes of a running kinference: which provider and model serve inference.local.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    inner = parser.add_subparsers(dest="route_verb", required=True, metavar="VERB")
    to_set = inner.add_parser("set", help="point a route at a provider and a model, once its endpoint has answered")
    update = inner.add_parser("update", help="change some of it and keep the rest")
    inner.add_parser("get", help="show a route, or all of them")
    inner.add_parser("delete", help="unset a route")
    for each in (to_set, update):
        each.add_argument("--provider", metavar="NAME", required=each is to_set, help="provider record")
        each.add_argument("--model", metavar="ID", required=each is to_set, help="model of every request")
        each.add_argument("--timeout", type=_seconds, metavar="N", help="seconds for answers not streamed; 0: default")
        each.add_argument("--no-verify", action="store_true", help="store it without trying the endpoint")
    for each in inner.choices.values():
        which = each.add_mutually_exclusive_group()
        which.add_argument("--system", action="store_true", help="the sandbox's own route, not inference.local")
        which.add_argument("--route", metavar="NAME", help="a further route, for protocols that inference.local lacks")
        each.add_argument("--workspace", metavar="NAME", default=DEFAULT_WORKSPACE, help="whose routes; %(default)s")
        each.add_argument("--sandbox", metavar="NAME", default="", help="only this one's, in place of the workspace's")
        add_common(each)
    parser.set_defaults(run=run)


def _seconds(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):  # noqa: PLR2004 - digits that fit 63 bits
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of seconds")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Do one sub-verb."""
    api = admin_api(args)
    name = args.route or (SYSTEM_ROUTE if args.system else USER_ROUTE)
    verbs = {"set": _set, "update": _update, "delete": _delete}
    if args.route_verb == "get":
        return _get(api, args)
    answer, lines = verbs[args.route_verb](api, name, args)
    print(shown_json(answer) if args.output == "json" else "\n".join(lines))
    return 0


def _set(api: AdminApi, name: str, args: argparse.Namespace) -> tuple[Json, Iterable[str]]:
    body = {"provider": args.provider, "model": args.model, "no_verify": args.no_verify}
    return _stored(api.ask("PUT", _path(name, args), {**body, "timeout_secs": args.timeout or 0}))


def _update(api: AdminApi, name: str, args: argparse.Namespace) -> tuple[Json, Iterable[str]]:
    """Over the version that was read: a change by somebody else in between is refused, not undone."""
    if args.provider is None and args.model is None and args.timeout is None:
        raise Refused("USAGE", "give at least one of --provider, --model and --timeout")
    old = api.ask("GET", _path(name, args))
    body = {
        "provider": old["provider"] if args.provider is None else args.provider,
        "model": old["model"] if args.model is None else args.model,
        "timeout_secs": old["timeout_secs"] if args.timeout is None else args.timeout,
        "no_verify": args.no_verify,
        "version": old["version"],
    }
    return _stored(api.ask("PUT", _path(name, args), body))


def _path(name: str, args: argparse.Namespace) -> str:
    return f"{named('routes', name)}?{urlencode({'workspace': args.workspace, 'sandbox': args.sandbox})}"


def _delete(api: AdminApi, name: str, args: argparse.Namespace) -> tuple[Json, Iterable[str]]:
    answer = api.ask("DELETE", _path(name, args))
    return answer, [f"Deleted route {name}" if answer["deleted"] else f"Route {name}: Not configured"]


def _get(api: AdminApi, args: argparse.Namespace) -> int:
    routes = api.ask("GET", "/api/v1/routes")["routes"]
    scope = (args.workspace, args.sandbox)
    stored = {each["route"]: each for each in routes if (each["workspace"], each["sandbox"]) == scope}
    asked = SYSTEM_ROUTE if args.system else args.route
    names = [asked] if asked else list(dict.fromkeys([USER_ROUTE, SYSTEM_ROUTE, *stored]))
    if args.output == "json":
        print(shown_json({"routes": [stored[name] for name in names if name in stored]}))
        return 0
    for place, name in enumerate(names):
        lines = _described(stored[name]) if name in stored else ["", "  Not configured"]
        print("\n".join([*([""] if place else []), f"{_title(name)}:", *lines]))
    return 0


def _stored(route: Json) -> tuple[Json, Iterable[str]]:
    lines = [f"{_title(route['route'])} configured:", *_described(route)]
    if route["validated_endpoints"]:
        lines.append("  Validated Endpoints:")
        lines += [f"    - {each['url']} ({each['protocol']})" for each in route["validated_endpoints"]]
    return route, lines


def _title(name: str) -> str:
    return TITLES.get(name, f"Route {name}")


def _described(route: Json) -> list[str]:
    lines = ["", f"  Route: {route['route']}", f"  Provider: {route['provider']}", f"  Model: {route['model']}"]
    lines.append(f"  Version: {route['version']}")
    if route["timeout_secs"]:
        lines.append(f"  Timeout: {route['timeout_secs']}s")
    if route.get("broken"):
        lines.append(f"  Broken: {route['broken']}")
    return lines

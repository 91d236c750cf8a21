"""`kinference config`: check a file, show what it amounts to, or print the schema."""

import json
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from kinference.cli.arguments import Verbs
from kinference.config.env import process_environment
from kinference.config.json_schema import json_schema
from kinference.config.load import advice, load
from kinference.config.problems import InvalidConfig
from kinference.config.reference import written
from kinference.config.schema import Config

_EXAMPLE = "example: kinference config check kinference.yaml"


def add(verbs: Verbs) -> None:
    """Declare the verb and its three sub-verbs."""
    parser = verbs.add_parser("config", help="check, show or describe a configuration file", epilog=_EXAMPLE)
    inner = parser.add_subparsers(title="verbs", dest="config_verb", required=True, metavar="VERB")
    check = inner.add_parser("check", help="validate a file without starting anything", epilog=_EXAMPLE)
    check.add_argument("file", type=Path, metavar="FILE")
    show = inner.add_parser("show", help="print the file with defaults and overrides filled in, secrets as references")
    show.add_argument("file", type=Path, metavar="FILE")
    inner.add_parser("schema", help="print the JSON Schema of the file")
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Exit code 0, or 1 for a file that cannot be used."""
    if args.config_verb == "schema":
        print(json.dumps(json_schema(), indent=2))
        return 0
    environ = process_environment()
    try:
        config = load(args.file, environ)
    except InvalidConfig as error:
        for line in error.lines(args.file):
            print(line, file=sys.stderr)
        return 1
    return _check(args.file, config, environ) if args.config_verb == "check" else _show(config)


def _check(file: Path, config: Config, environ: Mapping[str, str]) -> int:
    for line in advice(config, environ):
        print(f"{file}: warning: {line}", file=sys.stderr)
    endpoints = sum(len(pool.endpoints) for pool in config.pools)
    discovered = sum(pool.discovery is not None for pool in config.pools)
    also = f", discovered {discovered}" if discovered else ""
    print(
        f"{file}: ok: pools {len(config.pools)} (endpoints {endpoints}{also}), backends {len(config.backends)}, "
        f"models {len(config.models)}, tenants {len(config.tenants)}, keys {len(config.gateway.keys)}"
    )
    return 0


def _show(config: Config) -> int:
    print(json.dumps(written(config), indent=2))
    return 0

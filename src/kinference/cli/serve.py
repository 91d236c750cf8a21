"""`kinference serve`: all planes in one process."""

import argparse
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import uvloop

from kinference.cli.arguments import Verbs
from kinference.config.env import process_environment
from kinference.config.load import advice, from_engines, load
from kinference.config.problems import InvalidConfig
from kinference.config.watch import Reloader
from kinference.errors import ConfigError
from kinference.observe.logs import LEVELS, LogFormat, configure_logs
from kinference.runtime import collector
from kinference.runtime.descriptors import raise_limit, shortage
from kinference.runtime.exposure import refuse_exposure
from kinference.runtime.planes import ALL, Plane
from kinference.runtime.serve import ServeOptions, serve
from kinference.runtime.signals import ignored
from kinference.runtime.wires import Wire

DESCRIPTION = """\
Routes requests to engines and providers: HTTP on 127.0.0.1:8080, gRPC picks on 127.0.0.1:50051, metrics and the admin
API on 127.0.0.1:9090. The file's single values can be overridden by environment variables: listen.gateway by
KINFERENCE_LISTEN_GATEWAY.
"""

EXAMPLE = """\
examples:
  kinference serve --engine http://gpu-1:8000 --engine http://gpu-2:8000
  kinference serve --config kinference.yaml --log-format json
  KINFERENCE_LISTEN_GATEWAY=127.0.0.1:0 kinference serve --engine http://gpu-1:8000 --ports-file ports.json
"""


def add(verbs: Verbs) -> None:
    """Declare the verb and its flags."""
    parser = verbs.add_parser(
        "serve",
        help="route requests: picker, gateway and admin port in one process",
        description=DESCRIPTION,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--config", type=Path, metavar="FILE", help="YAML file; read again on change and on SIGHUP")
    source.add_argument("--engine", action="append", metavar="URL", help="an engine, http://HOST:PORT; may be repeated")
    parser.add_argument(
        "--planes",
        type=_planes,
        default=ALL,
        metavar="PLANE,...",
        help="picker, control, gateway: what this process serves; planes of the configuration says where the others "
        "are (all)",
    )
    parser.add_argument("--ports-file", type=Path, metavar="PATH", help="write the ports in use there, as JSON")
    parser.add_argument("--insecure", action="store_true", help="allow listening off loopback without credentials")
    parser.add_argument(
        "--wire",
        choices=[wire.value for wire in Wire],
        default=Wire.OWN.value,
        help="what carries requests: our own code, or grpcio and aiohttp to compare; default %(default)s",
    )
    parser.add_argument(
        "--log-format",
        choices=[kind.value for kind in LogFormat],
        default=LogFormat.TEXT.value,
        help="how lines on stderr are written (%(default)s)",
    )
    parser.add_argument("--log-level", choices=LEVELS, default="info", help="the least that is told (%(default)s)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until stopped."""
    with ignored(signal.SIGHUP):  # until there is somebody to hear it; the file is compared with what was read of it
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    configure_logs(LogFormat(args.log_format), args.log_level)
    environ = process_environment()
    try:
        config = load(args.config, environ) if args.config else from_engines(args.engine, environ)
    except InvalidConfig as error:
        for line in error.lines(args.config) if args.config else map(str, error.problems):
            print(f"kinference: {line}", file=sys.stderr)
        return 1
    for line in (*advice(config, environ), shortage(raise_limit(), config.limits)):
        if line:
            with suppress(OSError):  # a full disk, or nobody who reads it, is no reason not to serve
                print(f"kinference: note: {line}", file=sys.stderr)
    refuse_exposure(config, insecure=args.insecure, planes=args.planes)
    if args.ports_file and not args.ports_file.parent.is_dir():
        raise ConfigError("--ports-file", f"no folder {args.ports_file.parent}", "make it, or name a file elsewhere")
    reloader = Reloader(args.config, environ, config) if args.config else None
    wire = Wire(args.wire)
    options = ServeOptions(config, _announce, args.config, reloader, args.ports_file, wire, args.insecure, args.planes)
    uvloop.run(serve(options))
    return 0


def _planes(text: str) -> frozenset[Plane]:
    try:
        return frozenset(map(Plane, text.split(",")))
    except ValueError:
        known = ", ".join(plane.value for plane in Plane)
        raise argparse.ArgumentTypeError(f"name planes with commas between them: {known}") from None


def _announce(line: str) -> None:
    """Say that it is ready. The service can do without, should the disk be full or nobody read it any more."""
    collector.settle()
    try:
        print(line, flush=True)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)  # for what is left of it, which would fail the end of the process
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)

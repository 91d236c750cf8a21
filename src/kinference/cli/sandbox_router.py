"""`kinference sandbox-router`: inference.local inside a sandbox."""

import argparse
from pathlib import Path

import uvloop

from kinference.cli.arguments import Verbs
from kinference.config.env import process_environment
from kinference.config.values import HostPort, Unreadable, parse_host_port
from kinference.errors import ConfigError
from kinference.observe.logs import LEVELS, LogFormat, configure_logs
from kinference.runtime.sandbox import SandboxOptions, sandbox_router
from kinference.runtime.signals import STOPPING, requested

ROUTES_VARIABLE, ENDPOINT_VARIABLE = "OPENSHELL_INFERENCE_ROUTES", "OPENSHELL_ENDPOINT"

EXAMPLE = """\
Programs reach it as https://inference.local through HTTPS_PROXY and trust --ca-file, or plainly at --listen.
Each flag has the variable of OpenShell's supervisor in its place: OPENSHELL_INFERENCE_ROUTES, OPENSHELL_ENDPOINT,
OPENSHELL_SANDBOX_TOKEN or OPENSHELL_SANDBOX_TOKEN_FILE, OPENSHELL_TLS_CA (absent: this machine's authorities),
OPENSHELL_TLS_CERT with OPENSHELL_TLS_KEY where a certificate is asked for, OPENSHELL_GATEWAY_TLS_SERVER_NAME.

examples:
  kinference sandbox-router --endpoint http://127.0.0.1:50051 --ca-file ca.pem
  kinference sandbox-router --routes routes.yaml
  curl --proxy http://127.0.0.1:3128 --cacert ca.pem https://inference.local/v1/models
"""


def add(verbs: Verbs) -> None:
    """Declare the verb and its flags."""
    parser = verbs.add_parser(
        "sandbox-router",
        help="serve inference.local inside a sandbox, by the control plane's routes",
        description="Serve inference.local inside a sandbox.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--routes", type=Path, metavar="FILE", help="YAML file of routes; wins over --endpoint")
    parser.add_argument("--endpoint", metavar="URL", help="control plane: http://HOST:PORT or https://HOST:PORT")
    parser.add_argument("--listen", type=_address, default=HostPort("127.0.0.1", 8321), metavar="HOST:PORT")
    parser.add_argument("--proxy", type=_address, default=HostPort("127.0.0.1", 3128), metavar="HOST:PORT")
    parser.add_argument("--ca-file", type=Path, metavar="PATH", help="write the certificate to trust there")
    parser.add_argument("--log-format", choices=[kind.value for kind in LogFormat], default=LogFormat.TEXT.value)
    parser.add_argument("--log-level", choices=LEVELS, default="info")
    parser.set_defaults(run=run)


def _address(text: str) -> HostPort:
    try:
        return parse_host_port(text)
    except Unreadable as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(args: argparse.Namespace) -> int:
    """Serve until stopped."""
    configure_logs(LogFormat(args.log_format), args.log_level)
    uvloop.run(_serve(options_of(args)))
    return 0


def options_of(args: argparse.Namespace) -> SandboxOptions:
    """The flags, and variables where there is no flag. Raises ConfigError without a source of routes."""
    environ = process_environment()
    named = environ.get(ROUTES_VARIABLE)
    routes = args.routes or (Path(named) if named else None)
    endpoint = args.endpoint or environ.get(ENDPOINT_VARIABLE, "")
    if routes is None and not endpoint.startswith(("http://", "https://")):
        raise ConfigError("sandbox-router", "no routes", "give --routes FILE, or --endpoint http://HOST:PORT")
    return SandboxOptions(args.listen, args.proxy, environ, routes, endpoint, args.ca_file)


async def _serve(options: SandboxOptions) -> None:
    with requested(*STOPPING) as stop:
        async with sandbox_router(options) as ports:
            listen, proxy = options.listen.host, options.proxy.host
            print(f"kinference: ready, inference at http://{listen}:{ports.listen}", end=", ")
            print(f"proxy for https://inference.local http://{proxy}:{ports.proxy}", flush=True)
            await stop.wait()

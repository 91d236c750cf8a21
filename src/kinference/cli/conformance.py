"""`kinference conformance`: hold a running Picker server to every clause of the contract."""

import argparse
import asyncio
import ssl
import sys
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress

from kinference.cli.arguments import Verbs
from kinference.cli.credentials import add_credentials, file_bytes, tls_context, token_of
from kinference.config.values import HostPort, Unreadable, parse_duration, parse_host_port, parse_size
from kinference.conformance.case import Case
from kinference.conformance.cases import CASES
from kinference.conformance.clauses import CLAUSES, Strength
from kinference.conformance.reporting import as_json, as_junit
from kinference.conformance.runner import Result, Verdict, run_cases
from kinference.conformance.table import print_cases, print_results
from kinference.conformance.target import Limits, Names, Security, Target
from kinference.errors import KinferenceError

DESCRIPTION = """\
Calls a server of kinference.v1.Picker, ours or anyone's, the way callers do and the way they should not, and holds
every answer against the contract. It sees nothing but the port. What it pushes it hands back; the server should have
nothing else to do meanwhile.

A clause is MUST (the contract binds the server), MAY (callers may, so the server must tolerate it) or OPEN (the
contract does not say; this is how kinference reads it: --contract-only leaves those out).

Some cases need to know the server: which model it serves, whom it turns away, how small its limits are. A case that
lacks such a flag is skipped and says which.
"""

EXAMPLE = """\
examples:
  kinference conformance --target 127.0.0.1:50051 --model llama-3.1-8b
  kinference conformance --list
  kinference conformance --target 127.0.0.1:50051 --only push --only K3 --only 'pull.a-second-*'

to skip next to nothing, set the server's limits (body_max_bytes, buffer_max_bytes, push_idle_timeout, body_ttl) so:
  kinference conformance --target 127.0.0.1:50051 --model M --provider-model P --pool default/gpu \\
    --rejected-tenant barred --empty-tenant rejected \\
    --body-max 16MiB --buffer-max 20MiB --push-idle 2s --body-ttl 2s

exit codes: 0 every case that ran passed, 1 some failed or nobody answered, 2 usage
"""

Value = TypeVar("Value")


def add(verbs: Verbs) -> None:
    """Declare the verb and its flags."""
    parser = verbs.add_parser(
        "conformance",
        help="hold a Picker server to the contract, clause by clause",
        description=DESCRIPTION,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--target", type=_read(parse_host_port), metavar="HOST:PORT", help="the server under test")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="a case, a group, a clause or a glob; again for more",
    )
    parser.add_argument("--contract-only", action="store_true", help="leave out what the contract does not say")
    parser.add_argument("--list", action="store_true", help="show the cases and what each needs, and run none")
    _add_names(parser.add_argument_group("what the server serves, and whom"))
    _add_limits(parser.add_argument_group("the server's limits, so that their edges are known"))
    _add_outputs(parser.add_argument_group("results"))
    _add_security(parser.add_argument_group("connection"))
    parser.set_defaults(run=run)


def _add_names(group: argparse._ArgumentGroup) -> None:
    names = Names()
    group.add_argument("--model", default="", metavar="M", help="a model that it serves on its own engines")
    group.add_argument(
        "--provider-model", default="", metavar="M", help="a model that a provider of OpenAI's Chat API serves for it"
    )
    group.add_argument("--pool", default="", metavar="NAMESPACE/NAME", help="a pool that serves --model")
    group.add_argument("--tenant", default=names.tenant, metavar="T", help="a tenant that may use them (%(default)s)")
    group.add_argument("--rejected-tenant", default="", metavar="T", help="a tenant that may not")
    group.add_argument("--empty-tenant", choices=("served", "rejected"), help='what its rules make of the tenant ""')


def _add_limits(group: argparse._ArgumentGroup) -> None:
    limits = Limits()
    sizes = (
        ("--body-max", limits.body_max, "largest body (32MiB)"),
        ("--buffer-max", limits.buffer_max, "all bodies together (1GiB)"),
        ("--chunk-max", limits.chunk_max, "largest chunk (1MiB)"),
    )
    for flag, size, text in sizes:
        group.add_argument(flag, type=_read(parse_size), default=size, metavar="SIZE", help=text)
    times = (
        ("--push-idle", limits.push_idle, "longest gap between two chunks (30s)"),
        ("--body-ttl", limits.body_ttl, "how long a body waits to be picked, and to be pulled (2m)"),
    )
    for flag, seconds, text in times:
        group.add_argument(flag, type=_read(parse_duration), default=seconds, metavar="TIME", help=text)


def _add_outputs(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--output", choices=("table", "json"), default="table", help="on stdout (%(default)s)")
    group.add_argument("--json", type=Path, metavar="FILE", help="write the results there as JSON")
    group.add_argument("--junit", type=Path, metavar="FILE", help="write the results there as JUnit XML")


def _add_security(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--tls", action="store_true", help="use TLS; the system's authorities unless --tls-ca is given")
    add_credentials(group, "picker")


def _read(parse: Callable[[str], Value]) -> Callable[[str], Value]:
    """A parser of the configuration as one of arguments."""

    def read(text: str) -> Value:
        try:
            return parse(text)
        except Unreadable as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def run(args: argparse.Namespace) -> int:
    """Run the chosen cases and show what became of them."""
    cases = _chosen(args.only, contract_only=args.contract_only)
    if not cases:
        return _usage(f"no case is called {' or '.join(args.only)}; see --list")
    if args.list:
        print_cases(Console(), cases)
        return 0
    if args.target is None:
        return _usage("--target is missing: HOST:PORT of the server under test, such as 127.0.0.1:50051")
    target = _target(args)
    results = asyncio.run(_run(target, cases))
    _write(args.json, as_json(results, target.address))
    _write(args.junit, as_junit(results, target.address))
    if args.output == "json":
        print(as_json(results, target.address))
    else:
        print_results(Console(), results)
    return 1 if any(result.verdict is Verdict.FAILED for result in results) else 0


async def _run(target: Target, cases: Sequence[Case]) -> list[Result]:
    results = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(cases))
        async for result in run_cases(target, cases):
            results.append(result)
            progress.update(task, advance=1, description=result.case.name[:50])
    return results


def _chosen(only: Sequence[str], *, contract_only: bool) -> list[Case]:
    def is_chosen(case: Case) -> bool:
        is_open = all(CLAUSES[number].strength is Strength.OPEN for number in case.clauses)
        named = {case.name, case.name.partition(".")[0], *case.clauses}
        wanted = not only or any(name in named or fnmatch(case.name, name) for name in only)
        return wanted and not (contract_only and is_open)

    return [case for case in CASES if is_chosen(case)]


def _target(args: argparse.Namespace) -> Target:
    address: HostPort = args.target
    empty = None if args.empty_tenant is None else args.empty_tenant == "served"
    return Target(
        address.host,
        address.port,
        Limits(args.body_max, args.buffer_max, args.chunk_max, args.push_idle, args.body_ttl),
        Names(args.model, args.tenant, args.rejected_tenant, empty, args.provider_model, args.pool),
        _security(args),
    )


def _security(args: argparse.Namespace) -> Security:
    token = token_of(args)
    context = tls_context(args) or (ssl.create_default_context() if args.tls else None)
    if context is None:
        return Security(token=token)
    context.set_alpn_protocols(["h2"])
    ca, certificate, key = (
        None if file is None else file_bytes(file) for file in (args.tls_ca, args.tls_cert, args.tls_key)
    )
    return Security(tls=True, ca=ca, certificate=certificate, key=key, ssl_context=context, token=token)


def _write(file: Path | None, text: str) -> None:
    if file is None:
        return
    try:
        file.write_text(text)
    except OSError as error:
        raise KinferenceError(f"cannot write {file}: {error.strerror}") from None


def _usage(message: str) -> int:
    print(f"kinference conformance: {message}", file=sys.stderr)
    return 2

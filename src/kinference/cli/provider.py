"""`kinference provider`: the records of where inference can be had and with what credential."""

import argparse
import getpass
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from kinference.cli.admin_api import Json, Refused, add_common, admin_api, named, shown_json
from kinference.cli.arguments import Verbs
from kinference.config.env import process_environment
from kinference.control.provider_types import TYPES, type_named

PATH = "/api/v1/providers"
FILE_BYTES_MAX = 8192

EXAMPLE = """\
A credential never stands on the command line: it comes from a variable, a file or a prompt, and is stored encrypted;
or only where it is gets stored, and it is read there whenever it is needed.

examples:
  kinference provider create openai --type openai --credential-env OPENAI_API_KEY
  kinference provider create local --type openai-compatible --config OPENAI_BASE_URL=http://127.0.0.1:8000/v1
  kinference provider update openai --credential-file OPENAI_API_KEY=new-key.txt
  kinference provider update openai --credential-ref 'OPENAI_API_KEY=file:/run/secrets/openai'
"""


def add(verbs: Verbs) -> None:
    """Declare the verb and its sub-verbs."""
    parser = verbs.add_parser(
        "provider",
        help="create, list, show, change or delete provider records",
        description="Provider records of a running kinference.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    inner = parser.add_subparsers(dest="provider_verb", required=True, metavar="VERB")
    create = inner.add_parser("create", help="make a record")
    create.add_argument("name", nargs="?", default="", metavar="NAME", help="absent: a random one")
    create.add_argument("--type", required=True, metavar="T", help="openai, anthropic, nvidia, openai-compatible, ...")
    update = inner.add_parser("update", help="merge into a record; an empty value deletes its key")
    update.add_argument("name", metavar="NAME")
    for each in (create, update):
        _add_entries(each)
    for verb, text in (("get", "show a record, credentials redacted"), ("delete", "delete a record that nothing uses")):
        inner.add_parser(verb, help=text).add_argument("name", metavar="NAME")
    inner.add_parser("list", help="show all records, credentials redacted")
    for each in inner.choices.values():
        add_common(each)
    parser.set_defaults(run=run)


def _add_entries(parser: argparse.ArgumentParser) -> None:
    def many(flag: str, metavar: str, text: str) -> None:
        parser.add_argument(flag, action="append", default=[], metavar=metavar, help=text)

    many("--credential-env", "KEY[=VARIABLE]", "credential from an environment variable, stored encrypted")
    many("--credential-file", "KEY=FILE", "credential from a file, stored encrypted")
    many("--credential-prompt", "KEY", "credential that you are asked for, stored encrypted")
    places = "${NAME}, file:PATH or k8s:NAMESPACE/NAME/KEY"
    many("--credential-ref", "KEY=REFERENCE", f"where the credential is, as kinference sees it: {places}")
    many("--config", "KEY=VALUE", "for example OPENAI_BASE_URL=https://host/v1")


def run(args: argparse.Namespace) -> int:
    """Do one sub-verb."""
    api = admin_api(args)
    verb: str = args.provider_verb
    if verb == "list":
        _show(args.output, api.ask("GET", PATH), _listed)
    elif verb == "get":
        _show(args.output, api.ask("GET", named("providers", args.name)), _described)
    elif verb == "create":
        body = {"name": args.name, "type": args.type, **_entries(args)}
        _show(args.output, api.ask("POST", PATH, body), lambda made: [f"Created provider {made['name']}"])
        _warn_of(args.type)
    elif verb == "update":
        changed = api.ask("PATCH", named("providers", args.name), _entries(args))
        _show(args.output, changed, lambda made: [f"Updated provider {made['name']}"])
    else:
        deleted = api.ask("DELETE", named("providers", args.name))
        told = "Deleted provider" if deleted["deleted"] else "There is no provider"
        _show(args.output, deleted, lambda _answer: [f"{told} {args.name}"])
    return 0


def _warn_of(kind: str) -> None:
    """A record may be of any type: sandboxes know others than those that serve models."""
    if type_named(kind) is None:
        known = ", ".join(each.name for each in TYPES)
        print(f"note: no route and no backend can use type '{kind}'; those that serve models: {known}", file=sys.stderr)


def _show(output: str, answer: Json, lines: Callable[[Json], Iterable[str]]) -> None:
    print(shown_json(answer) if output == "json" else "\n".join(lines(answer)))


def _listed(answer: Json) -> Iterable[str]:
    providers = answer["providers"]
    if not providers:
        return ["No providers; make one with: kinference provider create"]
    rows = [("NAME", "TYPE", "CREDENTIALS"), *((p["name"], p["type"], ",".join(p["credentials"])) for p in providers)]
    widths = [max(len(row[place]) for row in rows) for place in range(2)]
    return [f"{name:<{widths[0]}}  {kind:<{widths[1]}}  {keys}".rstrip() for name, kind, keys in rows]


def _described(provider: Json) -> Iterable[str]:
    yield f"Name: {provider['name']}"
    yield f"Type: {provider['type']}"
    for title in ("credentials", "config"):
        yield f"{title.capitalize()}:"
        yield from (f"  {key}: {value}" for key, value in sorted(provider[title].items()))


def _entries(args: argparse.Namespace) -> Mapping[str, Mapping[str, str]]:
    """What the flags give, secrets read from where they are."""
    secrets = {key: _from_variable(key, variable) for key, variable in map(_pair, args.credential_env)}
    secrets |= {key: _from_file(key, path) for key, path in map(_full_pair, args.credential_file)}
    secrets |= {key: getpass.getpass(f"{key}: ") for key in args.credential_prompt}
    return {
        "credentials": secrets,
        "references": dict(map(_full_pair, args.credential_ref)),
        "config": dict(map(_full_pair, args.config)),
    }


def _pair(text: str) -> tuple[str, str]:
    key, _, value = text.partition("=")
    return key, value


def _full_pair(text: str) -> tuple[str, str]:
    """A pair that needs its equals sign. Where it is missing the text may be a secret, so it is not repeated."""
    if "=" not in text:
        raise Refused("USAGE", "write KEY=VALUE: one of the flags has no equals sign")
    return _pair(text)


def _from_variable(key: str, variable: str) -> str:
    """What was given as the variable's name may be the secret itself, so it is not repeated; nor is a file's."""
    value = process_environment().get(variable or key)
    if value is None:
        wanted = f"the variable given for {key}" if variable else "a variable given to --credential-env"
        advice = "export it first, and write KEY or KEY=VARIABLE, never the credential"
        raise Refused("USAGE", f"{wanted} is not set in the environment; {advice}")
    return value


def _from_file(key: str, path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return file.read(FILE_BYTES_MAX + 1).decode("utf-8", "replace").rstrip("\r\n")
    except OSError as error:
        raise Refused("USAGE", f"the file given for {key} cannot be read: {error.strerror}") from None

"""`kinference store`: back up, restore, and rotate the key of the control plane's records."""

import argparse
import asyncio
import os
from pathlib import Path

from kinference.cli.arguments import Verbs
from kinference.config.env import process_environment
from kinference.config.load import load
from kinference.control.errors import StoreFailed
from kinference.runtime import control

BACKUP_BYTES_MAX = 256 * 1024 * 1024

EXAMPLE = """\
A backup holds secrets only as they are stored, encrypted: keep the key (KINFERENCE_SECRET_KEY, or the file
secret.key in your state directory) as well, and elsewhere.

examples:
  kinference store backup records.jsonl
  KINFERENCE_CONTROL_STORE=postgresql://kinference@db/kinference kinference store restore records.jsonl
  kinference store rotate-key
"""


def add(verbs: Verbs) -> None:
    """Declare the verb and its sub-verbs."""
    parser = verbs.add_parser(
        "store",
        help="back up or restore the control plane's records, or rotate their key",
        description="The control plane's store, whether kinference is running or not.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    inner = parser.add_subparsers(dest="store_verb", required=True, metavar="VERB")
    backup = inner.add_parser("backup", help="write every record to a new file")
    restore = inner.add_parser("restore", help="replace every record by those of a file, of any kind of store")
    for each in (backup, restore):
        each.add_argument("file", type=Path, metavar="FILE")
    inner.add_parser("rotate-key", help="encrypt every secret's key anew, under a new key")
    for each in inner.choices.values():
        each.add_argument("--config", type=Path, metavar="FILE", help="where control.store is; absent: the default")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do one sub-verb."""
    environ = process_environment()
    config = load(args.config, environ)
    if args.store_verb == "backup":
        content = asyncio.run(control.backup(config, environ))
        _write_new(args.file, content)
        records = len(content.splitlines()) - 1
        print(f"Wrote {records} records of {control.store_place(config, environ)} to {args.file}")
    elif args.store_verb == "restore":
        print(f"Restored {asyncio.run(control.restore(config, environ, _read(args.file)))} records")
    else:
        print(f"Rotated the key of {asyncio.run(control.rotate_key(config, environ))} providers")
    return 0


def _write_new(path: Path, content: bytes) -> None:
    """Never over a file that is there."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
    except OSError as error:
        raise StoreFailed(f"{path} cannot be written: {error.strerror}") from None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(BACKUP_BYTES_MAX + 1)
    except OSError as error:
        raise StoreFailed(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > BACKUP_BYTES_MAX:
        raise StoreFailed(f"{path} is over {BACKUP_BYTES_MAX} bytes, which no backup is")
    return content

"""The flags by which a command shows who it is, and checks whom it talks to: TLS files and a token."""

import argparse
import ssl
from pathlib import Path

from kinference.errors import KinferenceError

TOKEN_BYTES_MAX = 64 * 1024


def add_credentials(group: argparse._ActionsContainer, role: str) -> None:
    """Declare them; `role` is the one that a token needs."""
    group.add_argument("--tls-ca", type=Path, metavar="FILE", help="authorities that may sign the server's certificate")
    group.add_argument("--tls-cert", type=Path, metavar="FILE", help="our own certificate, for mutual TLS")
    group.add_argument("--tls-key", type=Path, metavar="FILE", help="its key")
    group.add_argument(
        "--token-file", type=Path, metavar="FILE", help=f"holds the bearer token to show, of the role {role}"
    )


def token_of(args: argparse.Namespace) -> str:
    """The token to show, "" for none. Raises KinferenceError."""
    if args.token_file is None:
        return ""
    token = file_bytes(args.token_file)[:TOKEN_BYTES_MAX].decode(errors="replace").strip()
    if not token.isascii() or not token.isprintable() or not token:
        raise KinferenceError(f"{args.token_file} holds no token: one line of printable ASCII")
    return token


def tls_context(args: argparse.Namespace) -> ssl.SSLContext | None:
    """For a connection over TLS with the files named; None where none is. Raises KinferenceError."""
    if args.tls_ca is None and args.tls_cert is None:
        return None
    try:
        context = ssl.create_default_context(cafile=args.tls_ca)
        if args.tls_cert is not None:
            context.load_cert_chain(args.tls_cert, args.tls_key)
    except OSError as error:  # that of TLS is one
        raise KinferenceError(f"cannot use the TLS files: {error}") from None
    return context


def file_bytes(file: Path) -> bytes:
    """What a file holds. Raises KinferenceError."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise KinferenceError(f"cannot read {file}: {error.strerror}") from None

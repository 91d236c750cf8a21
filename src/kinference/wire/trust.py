"""The authorities by which those whom we call are verified, read again when their file changes."""

import logging
import os
import ssl
from pathlib import Path
from typing import TypeAlias

_log = logging.getLogger(__name__)

_Mark: TypeAlias = tuple[int, int, int]
"""What tells one content of a file from the next: also where another file was put in its place."""


class Trust:
    """Those of a PEM file; without one the system's, among which OpenSSL counts SSL_CERT_FILE."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._context: ssl.SSLContext | None = None
        self._mark: _Mark | None = None

    @property
    def context(self) -> ssl.SSLContext:
        """For a connection that begins now. Raises OSError where the first reading fails; a later one that does changes
        nothing: who replaces a file may be half done.
        """
        mark = _mark_of(self._file or _system_file())
        if self._context is None:
            self._context = self._read()
        elif mark != self._mark:
            self._context = self._read_again(self._context)
        self._mark = mark
        return self._context

    def _read(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self._file)

    def _read_again(self, before: ssl.SSLContext) -> ssl.SSLContext:
        try:
            fresh = self._read()
        except OSError as error:  # that of TLS is one
            _log.error("authorities not taken over, the old ones stay: %s", error)
            return before
        if _count(before) and not _count(fresh):  # the system's that cannot be read are no error, but none
            _log.error("authorities not taken over, the old ones stay: there is none in their file")
            return before
        _log.info("authorities taken over")
        return fresh


def why(error: OSError) -> str:
    """Why no connection could be made. The system's words: those of a library may quote the whole URL."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate does not verify, {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return "no TLS connection could be made"
    return os.strerror(error.errno).lower() if error.errno else "connection failed"


def _count(context: ssl.SSLContext) -> int:
    return context.cert_store_stats()["x509"]


def _system_file() -> Path:
    """A folder of authorities needs no watching: OpenSSL looks into it whenever it meets an unknown one."""
    paths = ssl.get_default_verify_paths()
    return Path(paths.cafile or paths.openssl_cafile)


def _mark_of(file: Path) -> _Mark | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino

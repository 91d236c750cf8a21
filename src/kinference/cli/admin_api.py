"""A client of the admin port for the verbs that change what a running kinference knows."""

import argparse
import http.client
import json
import ssl
from typing import Any
from urllib.parse import quote, urlsplit

from kinference import __version__
from kinference.cli.credentials import add_credentials, tls_context, token_of
from kinference.errors import KinferenceError

ADMIN_DEFAULT = "http://127.0.0.1:9090"
PATIENCE_SECONDS = 60.0
ANSWER_BYTES_MAX = 16 * 1024 * 1024

Json = Any
"""What JSON can hold."""


class Refused(KinferenceError):
    """The other side said no; the message is its own."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


class AdminApi:
    """One admin port, asked with a token where there is one."""

    def __init__(self, url: str, token: str = "", tls: ssl.SSLContext | None = None) -> None:
        self._url, self._token, self._tls = url, token, tls
        self._parts = urlsplit(url)
        if self._parts.scheme not in ("http", "https") or not self._parts.hostname:
            raise Refused("USAGE", f"--admin {url} is not an http or https URL")

    def ask(self, method: str, path: str, body: Json = None) -> Json:
        """The answer to one request. Raises Refused."""
        connection = self._connection()
        try:
            connection.request(method, self._parts.path.rstrip("/") + path, *self._content(body))
            answer = connection.getresponse()
            content = answer.read(ANSWER_BYTES_MAX)
        except (OSError, http.client.HTTPException, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            raise Refused("UNAVAILABLE", f"no kinference answers at {self._url}: {why}; {_advice(error)}") from None
        finally:
            connection.close()
        return _understood(answer.status, content)

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=PATIENCE_SECONDS, context=self._tls)
        return http.client.HTTPConnection(host, port, timeout=PATIENCE_SECONDS)

    def _content(self, body: Json) -> tuple[bytes | None, dict[str, str]]:
        headers = {"user-agent": f"kinference-cli/{__version__}", "accept": "application/json"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        if body is None:
            return None, headers
        return json.dumps(body).encode(), {**headers, "content-type": "application/json"}


def admin_api(args: argparse.Namespace) -> AdminApi:
    """The admin port that the flags name. Raises KinferenceError for files that cannot be used."""
    return AdminApi(args.admin, token_of(args), tls_context(args))


def named(collection: str, name: str) -> str:
    """The path of one member."""
    return f"/api/v1/{collection}/{quote(name, safe='')}"


def add_common(parser: argparse.ArgumentParser) -> None:
    """The flags that every verb of the kind has."""
    parser.add_argument("--admin", metavar="URL", default=ADMIN_DEFAULT, help="admin port; default %(default)s")
    add_credentials(parser, "admin")
    parser.add_argument("--output", choices=["text", "json"], default="text", help="default %(default)s")


def shown_json(answer: Json) -> str:
    return json.dumps(answer, indent=2)


def _advice(error: Exception) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return "name its authority with --tls-ca, and the host as the certificate does"
        case ssl.SSLError():
            return "write http:// if it speaks no TLS"
        case http.client.RemoteDisconnected():
            return "write https:// if it speaks TLS"
        case _:
            return "is it up?"


def _understood(status: int, content: bytes) -> Json:
    try:
        answer = json.loads(content)
    except ValueError:
        raise Refused(
            "UNKNOWN",
            f"the answer (HTTP {status}) is not kinference's; is this its admin port, where its control plane runs?",
        ) from None
    if status < 300:  # noqa: PLR2004 - HTTP's own classes
        return answer
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        raise Refused("UNKNOWN", f"HTTP {status}")
    raise Refused(str(error.get("code", "")), str(error.get("message", "")))

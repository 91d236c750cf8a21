import argparse
import http.client
import json
import re
import ssl
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from kinference.cli.admin_api import ADMIN_DEFAULT, AdminApi, Refused, add_common, named, shown_json


class Scripted(HTTPServer):
    """Answers everything the same way and keeps what it was asked."""

    status, content = 200, b'{"ok": true}'
    asked: list[tuple[str, str, Any]]

    def __init__(self) -> None:
        self.asked = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/under/"


class Handler(BaseHTTPRequestHandler):
    server: Scripted

    def do_GET(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        self.server.asked.append((self.command, self.path, body))
        self.send_response(self.server.status)
        self.send_header("content-length", str(len(self.server.content)))
        self.end_headers()
        self.wfile.write(self.server.content)

    do_PUT = do_GET  # noqa: N815 - the name that the base class calls

    def log_message(self, *_arguments: object) -> None: ...


@pytest.fixture
def server() -> Iterator[Scripted]:
    with Scripted() as scripted:
        thread = Thread(target=scripted.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield scripted
        scripted.shutdown()
        thread.join()


def test_a_request_goes_under_the_given_url(server: Scripted) -> None:
    assert AdminApi(server.url).ask("PUT", named("routes", "a b/c"), {"x": 1}) == {"ok": True}
    assert server.asked == [("PUT", "/under/api/v1/routes/a%20b%2Fc", {"x": 1})]


def test_a_refusal_is_the_other_sides_own(server: Scripted) -> None:
    server.status, server.content = 409, b'{"error": {"code": "ABORTED", "message": "somebody was first"}}'
    with pytest.raises(Refused, match="somebody was first") as refusal:
        AdminApi(server.url).ask("GET", "/")
    assert refusal.value.code == "ABORTED"


@pytest.mark.parametrize(
    ("status", "content", "problem"),
    [(200, b"<html>", "where its control plane runs"), (502, b"{}", "HTTP 502"), (500, b'{"error": "x"}', "HTTP 500")],
)
def test_an_answer_of_something_else_is_told_so(server: Scripted, status: int, content: bytes, problem: str) -> None:
    server.status, server.content = status, content
    with pytest.raises(Refused, match=problem):
        AdminApi(server.url).ask("GET", "/")


def test_nobody_there_is_told_with_the_url() -> None:
    with pytest.raises(Refused, match=r"no kinference answers at http://127\.0\.0\.1:1: Connection refused"):
        AdminApi("http://127.0.0.1:1").ask("GET", "/")


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (ssl.SSLCertVerificationError("not known"), "--tls-ca"),
        (ssl.SSLError("wrong version number"), "http://"),
        (http.client.RemoteDisconnected("no answer"), "https://"),
        (TimeoutError(), "is it up?"),
    ],
)
def test_what_keeps_an_answer_away_is_told_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, error: Exception, advice: str
) -> None:
    def fail(*_args: object) -> None:
        raise error

    monkeypatch.setattr(http.client.HTTPConnection, "request", fail)
    with pytest.raises(Refused, match=re.escape(advice)):
        AdminApi("http://127.0.0.1:1").ask("GET", "/")


@pytest.mark.parametrize("url", ["localhost:9090", "ftp://h", "http://"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(Refused, match="not an http or https URL"):
        AdminApi(url)


def test_every_verb_has_the_common_flags() -> None:
    parser = argparse.ArgumentParser()
    add_common(parser)
    args = parser.parse_args([])
    assert (args.admin, args.output) == (ADMIN_DEFAULT, "text")
    assert json.loads(shown_json({"a": [1]})) == {"a": [1]}

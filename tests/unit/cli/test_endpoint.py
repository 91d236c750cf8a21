"""`kinference endpoint`, against a real kinference."""

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from kinference.cli import endpoint
from kinference.cli.admin_api import AdminApi, Refused
from kinference.config.destinations import Pool
from tests.unit.cli.serving import admin_port, pool

Run = Callable[..., str]
ONE, TWO = "127.0.0.1:1", "127.0.0.1:2"
"""Nobody listens there."""


@pytest.fixture
def pools() -> tuple[Pool, ...]:
    return (pool("a", 1, 2), pool("b", 1))


@pytest.fixture
def run(
    tmp_path: Path, pools: tuple[Pool, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Run]:
    monkeypatch.setenv("KINFERENCE_SECRET_KEY", "ab" * 32)
    with admin_port(tmp_path, pools) as url:

        def run(*words: str) -> str:
            parser = argparse.ArgumentParser()
            endpoint.add(parser.add_subparsers())
            assert endpoint.run(parser.parse_args(["endpoint", *words, "--admin", url])) == 0
            return capsys.readouterr().out

        yield run


def draining(run: Run) -> set[tuple[str, str]]:
    rows = json.loads(run("list", "--output", "json"))["endpoints"]
    return {(row["pool"], row["address"]) for row in rows if row["draining"]}


def test_an_endpoint_drains_in_every_pool_or_one_until_it_is_told_not_to(run: Run) -> None:
    run("drain", ONE)
    assert draining(run) == {("default/a", ONE), ("default/b", ONE)}
    run("undrain", ONE, "--pool", "default/a")
    assert draining(run) == {("default/b", ONE)}
    run("undrain", ONE)
    assert draining(run) == set()


def test_people_see_a_table(run: Run) -> None:
    assert run("drain", TWO, "--wait", "5").splitlines() == [
        "ADDRESS      POOL       STATE    IN FLIGHT  WAITING  RUNNING  MODELS",
        "127.0.0.1:2  default/a  drained  0          -        -        m",
    ]
    assert [line.split()[2] for line in run("list").splitlines()[1:]] == ["not", "drained", "not"]


def test_what_is_not_there_is_said(run: Run) -> None:
    with pytest.raises(Refused, match=r"there is no endpoint 127\.0\.0\.1:3"):
        run("drain", "127.0.0.1:3")
    with pytest.raises(Refused, match=r"there is no endpoint 127\.0\.0\.1:2 in pool default/b"):
        run("drain", TWO, "--pool", "default/b")


@contextmanager
def busy(*requests: int) -> Iterator[str]:
    """The URL of an admin port whose one endpoint has so many requests each time that it is asked."""
    left = list(requests)

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the library's name
            row = {"pool": "default/a", "address": ONE, "requests": left.pop(0)}
            content = json.dumps({"endpoints": [row]}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 - the library's name

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


DRAINING = [{"pool": "default/a", "address": ONE}]


def test_a_drain_is_waited_for_until_nothing_is_in_flight() -> None:
    with busy(2, 1, 0) as url:
        assert endpoint._drained(AdminApi(url), DRAINING, 60.0)["endpoints"][0]["requests"] == 0


def test_and_no_longer_than_asked() -> None:
    with busy(2) as url, pytest.raises(Refused, match=r"2 requests are still in flight after 1e-09 s"):
        endpoint._drained(AdminApi(url), DRAINING, 1e-9)


def test_one_that_has_left_its_pool_has_nothing_in_flight() -> None:
    with busy(2) as url:
        assert endpoint._drained(AdminApi(url), [{"pool": "default/b", "address": ONE}], 60.0) == {"endpoints": []}

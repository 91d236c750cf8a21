"""`kinference sim`: what it prints, how it stops, and what it refuses."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from kinference.cli import main

PROGRAM = Path(sys.executable).with_name("kinference")


@contextmanager
def simulated(*flags: str) -> Iterator[tuple["subprocess.Popen[str]", list[str]]]:
    """A running engine, and the lines it said when it was ready."""
    command = [str(PROGRAM), "sim", "--model", "m", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        lines = 1 + sum(flag in ("--kv-events-endpoint", "--kv-replay-endpoint") for flag in flags)
        try:
            yield process, [process.stdout.readline() for _ in range(lines)]
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_listens_and_stops_cleanly_on_a_signal(number: signal.Signals) -> None:
    with simulated("--model", "alias", "--port", "0") as (process, (ready,)):
        assert ready.startswith("kinference sim: model m, alias on http://127.0.0.1:")
        with urlopen(f"{ready.split()[-1]}/health", timeout=10) as answer:
            assert answer.status == 200
        process.send_signal(number)
        assert process.wait(timeout=10) == 0
        assert process.stdout is not None
        assert process.stdout.read() == ""


def test_it_says_where_events_go() -> None:
    endpoint = "tcp://127.0.0.1:*"
    with simulated("--kv-events-endpoint", endpoint, "--kv-replay-endpoint", endpoint) as (process, lines):
        assert "KV events on tcp://127.0.0.1:" in lines[1]
        assert "KV replay on tcp://127.0.0.1:" in lines[2]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0


def test_a_port_in_use_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["sim", "--model", "m", "--port", str(taken.getsockname()[1])]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("kinference: cannot listen: ")
    assert "in use" in line


def test_a_zmq_endpoint_that_is_none_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--model", "m", "--kv-events-endpoint", "nowhere"]) == 1
    assert capsys.readouterr().err.startswith("kinference: cannot listen: nowhere: ")


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--fault", '{"kind": "burn"}'], "--fault"),
        (["--max-num-seqs", "9", "--max-num-batched-tokens", "8"], "batched_tokens_max"),
    ],
)
def test_options_that_do_not_go_together_are_usage_errors(
    flags: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sim", "--model", "m", *flags]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("flags", [[], ["--model", "m", "--port", "65536"], ["--model", "m", "--speed", "0"]])
def test_flags_that_cannot_be_read_are_usage_errors(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["sim", *flags])
    assert stopped.value.code == 2
    assert "usage: " in capsys.readouterr().err


def test_its_help_teaches_by_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["sim", "--help"])
    assert "kinference sim --port 8000 --model" in capsys.readouterr().out

"""`kinference conformance`: what it runs, prints, writes, and how it ends."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from kinference.cli import main
from kinference.conformance import runner
from tests.conformance.serving import ROOMY, served


@pytest.fixture
def target() -> Iterator[str]:
    """A server in a thread of its own, since the command line has its own loop."""
    ready, stop = Event(), Event()
    found: list[str] = []

    async def serve() -> None:
        async with served(ROOMY) as server:
            found.append(server.target.address)
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait(20)
    yield found[0]
    stop.set()
    thread.join()


def test_cases_that_pass_end_with_0_and_a_table(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--model", "llama", "--only", "K1", "--only", "abort", "--only", "length.a-length-declared-*"]
    assert main(["conformance", "--target", target, *flags]) == 0
    out = capsys.readouterr().out
    assert "K1" in out
    assert "D7" in out
    assert "7 cases: 7 passed, 0 failed, 0 skipped" in out


def test_cases_that_fail_end_with_1_and_say_why(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--target", target, "--model", "not-served", "--only", "K5"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "failed pick.a-choice-names-its-destination-and-an-id (K5): no destination for model 'not-served'" in out


def test_results_are_written_as_json_and_junit(target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--json", str(tmp_path / "r.json"), "--junit", str(tmp_path / "r.xml")]
    assert main(["conformance", "--target", target, "--only", "K1", "--only", "K5", "--output", "json", *files]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["passed"], printed["skipped"], printed["target"]) == (1, 1, target)
    assert json.loads((tmp_path / "r.json").read_text()) == printed
    assert "<testsuite" in (tmp_path / "r.xml").read_text()


def test_the_list_needs_no_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--list", "--only", "abort"]) == 0
    assert "A1   abort.the-first-abort-releases-and-no-other-does  needs --model" in capsys.readouterr().out


def test_what_the_contract_leaves_open_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--list", "--contract-only"]) == 0
    out = capsys.readouterr().out
    assert "\nK1 " in out
    assert "\nD6 " not in out


@pytest.mark.parametrize(
    ("flags", "told"),
    [([], "--target is missing"), (["--only", "unheard-of", "--target", "h:1"], "no case is called unheard-of")],
)
def test_what_cannot_be_run_is_a_usage_error(flags: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", *flags]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("flags", [["--target", "nowhere"], ["--body-max", "big"], ["--body-ttl", "soon"]])
def test_flags_that_cannot_be_read_are_usage_errors(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["conformance", *flags])
    assert stopped.value.code == 2
    assert flags[0] in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--tls-ca", "--tls-cert", "--token-file"])
def test_a_file_that_is_not_there_is_one_line(flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--target", "127.0.0.1:1", flag, str(tmp_path / "none")]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_target_that_does_not_answer_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "CONNECT_TIMEOUT", 0.2)
    assert main(["conformance", "--target", "127.0.0.1:1"]) == 1
    assert "kinference: no gRPC server answers at 127.0.0.1:1" in capsys.readouterr().err

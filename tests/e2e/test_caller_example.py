"""examples/caller.py against real processes: whole answers, streams, every refusal, and destinations that fail."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.e2e.processes import Served, engine, serve

EXAMPLE = Path(__file__).parents[2] / "examples/caller.py"


@dataclass(frozen=True)
class Stage:
    """One engine for `demo`, and the picker in front of it."""

    served: Served
    engine_url: str

    def call(self, model: str, *flags: str, body: bytes | None = None) -> tuple[int, str, str]:
        """Exit code and output of the example."""
        request = {"model": model, "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
        done = subprocess.run(
            [sys.executable, EXAMPLE, "--picker", f"127.0.0.1:{self.served.picker}", *flags],
            input=json.dumps(request).encode() if body is None else body,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def last_decision(self) -> dict[str, Any]:
        """What the picker heard of the last request."""
        with urlopen(f"{self.served.admin_url}/api/v1/decisions?limit=1", timeout=10) as answer:
            decision: dict[str, Any] = json.loads(answer.read())["decisions"][0]
            return decision


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("caller")
    with engine(model="demo") as url:
        names = ("hosted", "unresolved", "unreachable")
        config = {
            "pools": [{"name": "gpu", "endpoints": [url], "models": ["demo"]}],
            "backends": [
                {"name": name, "api": "openai_chat", "models": {f"{name}-model": "demo"}, "base_url": url}
                for name in names
            ],
            "tenants": [{"tenants": ["barred"], "models": []}],
            "limits": {"body_max_bytes": "64KiB"},
        }
        file = folder / "kinference.yaml"
        file.write_text(json.dumps(config))
        with serve(folder, "--config", str(file)) as served:
            yield Stage(served, url)


def test_an_answer_comes_back_and_is_reported(stage: Stage) -> None:
    code, out, err = stage.call("demo", "--tenant", "acme")
    assert (code, err) == (0, "")
    assert json.loads(out)["usage"]["completion_tokens"] == 5
    decision = stage.last_decision()
    assert (decision["tenant"], decision["upstream_status"], decision["ended"]) == ("acme", 200, "final")
    assert decision["completion_tokens"] == 5


def test_a_stream_comes_back_and_is_reported(stage: Stage) -> None:
    code, out, err = stage.call("demo", "--stream")
    assert (code, err) == (0, "")
    assert out.rstrip().endswith("data: [DONE]")
    decision = stage.last_decision()
    assert (decision["ended"], decision["completion_tokens"]) == ("final", 5)
    assert decision["observed_ttft_ms"] is not None


def test_a_provider_is_resolved_by_the_caller(stage: Stage) -> None:
    code, out, _ = stage.call("hosted-model", "--backend", f"hosted={stage.engine_url}")
    assert (code, json.loads(out)["model"]) == (0, "demo")


@pytest.mark.parametrize(
    ("model", "flags", "body", "told"),
    [
        ("demo", ("--tenant", "barred"), None, "HTTP 403: policy:"),
        ("nobody", (), None, "HTTP 503: "),
        ("demo", (), b"not json", "HTTP 400: "),
        ("demo", (), b"x" * 65_537, "HTTP 413: "),
    ],
)
def test_a_refusal_is_told_as_http_would(
    stage: Stage, model: str, flags: tuple[str, ...], body: bytes | None, told: str
) -> None:
    code, out, err = stage.call(model, *flags, body=body)
    assert (code, out) == (1, "")
    assert err.startswith(told)


def test_a_backend_without_a_url_is_reported_as_unresolved(stage: Stage) -> None:
    assert stage.call("unresolved-model")[2].startswith("HTTP 502: backend unresolved is not known here")
    assert stage.last_decision()["ended"] == "abort backend_unresolved"
    assert stage.call("unresolved-model")[2].startswith("HTTP 503: ")


def test_a_destination_that_does_not_answer_is_aborted(stage: Stage) -> None:
    _, _, err = stage.call("unreachable-model", "--backend", "unreachable=http://127.0.0.1:1")
    assert err.startswith("HTTP 502: 127.0.0.1:1 does not answer")
    assert stage.last_decision()["ended"] == "abort not_dispatched"


def test_a_picker_that_does_not_answer_is_tried_again_and_given_up() -> None:
    command: list[str | Path] = [sys.executable, EXAMPLE, "--picker", "127.0.0.1:1"]
    done = subprocess.run(command, input=b"{}", capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr[:9]) == (1, b"HTTP 503:")

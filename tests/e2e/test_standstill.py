"""A process that is stopped for longer than its patience, as a virtual machine that is moved, blames nobody for it."""

import json
import re
import signal
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import grpc
import pytest

from kinference.wire.proto import picker_pb2 as pb
from tests.e2e.processes import Served, engine, serve

PATIENCE_S = 5
"""Long enough for a busy machine to come to the standstill in time."""
ASKED = json.dumps({"model": "demo", "max_tokens": 3, "messages": [{"role": "user", "content": "Hello"}]}).encode()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    file = tmp_path / "kinference.yaml"
    with engine("--speed", "50") as url:
        file.write_text(f"pools: [{{name: a, endpoints: ['{url}']}}]\nlimits: {{push_idle_timeout: {PATIENCE_S}s}}\n")
        with serve(tmp_path, "--config", str(file)) as running:
            yield running


@contextmanager
def standing_still(served: Served) -> Iterator[None]:
    """Stopped from before the block until longer after it than anything is waited for."""
    served.process.popen.send_signal(signal.SIGSTOP)
    try:
        yield
        time.sleep(PATIENCE_S + 1.5)
    finally:
        served.process.popen.send_signal(signal.SIGCONT)


def test_an_upload_and_a_push_that_go_on_meanwhile_are_taken_in(served: Served) -> None:
    may_go_on = Event()

    def chunks() -> Iterator[pb.BodyChunk]:
        yield pb.BodyChunk(chunk=ASKED[:5])
        may_go_on.wait()
        yield pb.BodyChunk(chunk=ASKED[5:])

    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ncontent-length: {len(ASKED)}\r\nconnection: close\r\n"
    with (
        socket.create_connection(("127.0.0.1", served.gateway), timeout=60) as client,
        grpc.insecure_channel(f"127.0.0.1:{served.picker}") as channel,
    ):
        grpc.channel_ready_future(channel).result(timeout=60)
        client.sendall(f"{head}content-type: application/json\r\n\r\n".encode() + ASKED[:5])
        held = until_more_is_held(served, 0.0)
        push = channel.stream_unary(
            "/kinference.v1.Picker/PushBody", pb.BodyChunk.SerializeToString, pb.PushBodyResponse.FromString
        ).future(chunks(), timeout=60)
        until_more_is_held(served, held)
        with standing_still(served):
            client.sendall(ASKED[5:])
            may_go_on.set()
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        assert push.result().total_bytes == len(ASKED)


def until_more_is_held(served: Served, before: float) -> float:
    """Wait until bytes have come to be held beside those of before; returns how many there are then."""
    while (held := float(re.findall(r"\nkinference_picker_buffered_bytes (.*)", metrics(served))[0])) <= before:
        time.sleep(0.01)
    return held


def metrics(served: Served) -> str:
    with urllib.request.urlopen(f"{served.admin_url}/metrics", timeout=60) as answer:
        told: str = answer.read().decode()
    return told

"""A process that is stopped for longer than its patience, as a virtual machine that is moved, blames nobody for it."""

import json
import signal
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import pytest

from kinference.wire.proto import picker_pb2 as pb
from tests.e2e.processes import Served, engine, serve

PATIENCE_S = 0.5
ASKED = json.dumps({"model": "demo", "max_tokens": 3, "messages": [{"role": "user", "content": "Hello"}]}).encode()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("standstill")
    file = folder / "kinference.yaml"
    with engine("--speed", "50") as url:
        file.write_text(f"pools: [{{name: a, endpoints: ['{url}']}}]\nlimits: {{push_idle_timeout: {PATIENCE_S}s}}\n")
        with serve(folder, "--config", str(file)) as running:
            yield running


@contextmanager
def standing_still(served: Served) -> Iterator[None]:
    """Stopped from before the block until longer after it than anything is waited for."""
    served.process.popen.send_signal(signal.SIGSTOP)
    try:
        yield
        time.sleep(4 * PATIENCE_S)
    finally:
        served.process.popen.send_signal(signal.SIGCONT)


def test_an_upload_that_goes_on_meanwhile_is_answered(served: Served) -> None:
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ncontent-length: {len(ASKED)}\r\nexpect: 100-continue\r\n"
    with socket.create_connection(("127.0.0.1", served.gateway), timeout=60) as client:
        client.sendall(f"{head}content-type: application/json\r\nconnection: close\r\n\r\n".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 100 ")
        client.sendall(ASKED[:5])
        until_it_waits(served)
        with standing_still(served):
            client.sendall(ASKED[5:])
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")


def test_a_push_that_goes_on_meanwhile_is_taken_in(served: Served) -> None:
    def chunks() -> Iterator[pb.BodyChunk]:
        yield pb.BodyChunk(chunk=ASKED[:5])
        until_it_waits(served)
        with standing_still(served):
            yield pb.BodyChunk(chunk=ASKED[5:])

    with grpc.insecure_channel(f"127.0.0.1:{served.picker}") as channel:
        push = channel.stream_unary(
            "/kinference.v1.Picker/PushBody", pb.BodyChunk.SerializeToString, pb.PushBodyResponse.FromString
        )
        assert push(chunks(), timeout=60).total_bytes == len(ASKED)


def until_it_waits(served: Served) -> None:
    """For what follows the beginning of a body that it has taken in."""
    while "\nkinference_picker_buffered_bytes 0.0" in metrics(served):
        time.sleep(0.01)


def metrics(served: Served) -> str:
    with urllib.request.urlopen(f"{served.admin_url}/metrics", timeout=60) as answer:
        told: str = answer.read().decode()
    return told

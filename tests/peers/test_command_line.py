"""curl, nghttp and h2load against a whole `kinference serve`: the gateway in clear text and over TLS, and the picker."""

import asyncio
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.e2e.processes import Served, engine, serve
from tests.peers.conftest import absent
from tests.unit.wire.certificates import self_signed

HEALTHY, ASKED = b"\0\0\0\0\2\x08\1", b"\0\0\0\0\0"
"""A health check's answer and question, as gRPC frames them."""
CHECK = "grpc.health.v1.Health/Check"
GRPC = ("-H", "content-type: application/grpc", "-H", "te: trailers")
JSON = ("-H", "content-type: application/json")
CONFIGURATION = """
listen: {{tls: {{cert: {certificate}, key: {key}}}}}
pools: [{{name: gpu, endpoints: ["{url}"]}}]
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture(scope="module")
def engine_url() -> Iterator[str]:
    with engine("--speed", "100") as url:
        yield url


@pytest.fixture(scope="module")
def clear(folder: Path, engine_url: str) -> Iterator[Served]:
    with serve(folder, "--engine", engine_url) as served:
        yield served


@pytest.fixture(scope="module")
def secure(folder: Path, engine_url: str) -> Iterator[Served]:
    server = self_signed(folder, "server")
    file = folder / "kinference.yaml"
    file.write_text(CONFIGURATION.format(certificate=server.certificate, key=server.key, url=engine_url))
    with serve(folder, "--config", str(file)) as served:
        yield served


def chat(folder: Path, size: int, *, stream: bool = False) -> Path:
    """A file with a request."""
    file = folder / f"chat-{size}-{stream}.json"
    messages = [{"role": "user", "content": "word " * (size // 5)}]
    file.write_text(json.dumps({"model": "demo", "messages": messages, "max_tokens": 5, "stream": stream}))
    return file


async def run(program: str, *arguments: str | Path, given: bytes = b"") -> bytes:
    """What a program printed, which has to end well."""
    if shutil.which(program) is None:
        absent(program, "Debian has it in curl, or in nghttp2-client")
    process = await asyncio.create_subprocess_exec(
        program,
        *map(str, arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(120):
        output, _ = await process.communicate(given)
    assert process.returncode == 0, output.decode(errors="replace")
    return output


# --- curl ----------------------------------------------------------------------------------------

TOLD = ("-sS", "-w", r"\n%{http_version} %{http_code}")
SIZES = (100, 300_000)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("flag", "version"), [("--http2-prior-knowledge", "2"), ("--http2", "1.1"), ("--http1.0", "1.1")]
)
async def test_curl_in_clear_text(clear: Served, folder: Path, flag: str, version: str, size: int) -> None:
    """An offer to upgrade is passed over, as a server may: HTTP/2 in clear text is by prior knowledge."""
    url = f"{clear.gateway_url}/v1/chat/completions"
    output = await run("curl", *TOLD, flag, *JSON, "--data-binary", f"@{chat(folder, size)}", url)
    body, _, told = output.rpartition(b"\n")
    assert json.loads(body)["object"] == "chat.completion"
    assert told == f"{version} 200".encode()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("flag", "version"), [("--http2", "2"), ("--http1.1", "1.1")])
async def test_curl_over_tls(secure: Served, folder: Path, flag: str, version: str, size: int) -> None:
    url = f"https://127.0.0.1:{secure.gateway}/v1/chat/completions"
    trust = ("--cacert", folder / "server.pem")
    output = await run("curl", *TOLD, *trust, flag, *JSON, "--data-binary", f"@{chat(folder, size)}", url)
    body, _, told = output.rpartition(b"\n")
    assert json.loads(body)["object"] == "chat.completion"
    assert told == f"{version} 200".encode()


async def test_curl_reads_a_stream_to_its_end(clear: Served, folder: Path) -> None:
    url = f"{clear.gateway_url}/v1/chat/completions"
    file = chat(folder, 100, stream=True)
    output = await run("curl", "-sSN", "--http2-prior-knowledge", *JSON, "--data-binary", f"@{file}", url)
    assert output.rstrip().endswith(b"data: [DONE]")


async def test_curl_makes_a_grpc_call(clear: Served) -> None:
    url = f"http://127.0.0.1:{clear.picker}/{CHECK}"
    given = ("--data-binary", "@-", "-D", "-")
    output = await run("curl", "-sS", "--http2-prior-knowledge", *GRPC, *given, url, given=ASKED)
    assert HEALTHY in output
    assert b"grpc-status: 0" in output


# --- nghttp --------------------------------------------------------------------------------------


def statuses(output: bytes) -> list[bytes]:
    return re.findall(rb":status: (\d+)", output)


@pytest.mark.parametrize(
    "flags", [(), ("--continuation",), ("--padding=200",), ("--window-bits=10",), ("--expect-continue",)]
)
async def test_nghttp_sends_many_requests_on_one_connection(
    clear: Served, folder: Path, flags: tuple[str, ...]
) -> None:
    url = f"{clear.gateway_url}/v1/chat/completions"
    file = chat(folder, 300_000)
    output = await run("nghttp", "-nv", "-m", "10", *flags, *JSON, "-d", file, url)
    assert statuses(output).count(b"200") == 10


async def test_nghttp_speaks_http2_over_tls(secure: Served) -> None:
    output = await run("nghttp", "-nv", "-m", "20", f"https://127.0.0.1:{secure.gateway}/v1/models")
    assert b"The negotiated protocol: h2" in output
    assert statuses(output) == [b"200"] * 20


async def test_nghttp_makes_grpc_calls(clear: Served, folder: Path) -> None:
    asked = folder / "asked"
    asked.write_bytes(ASKED)
    output = await run("nghttp", "-nv", "-m", "20", *GRPC, "-d", asked, f"http://127.0.0.1:{clear.picker}/{CHECK}")
    assert output.count(b"grpc-status: 0") == 20


# --- h2load --------------------------------------------------------------------------------------


def succeeded(output: bytes) -> str:
    found = re.search(rb"requests: .* (\d+) done, (\d+) succeeded", output)
    codes = re.search(rb"status codes: (\d+) 2xx", output)
    assert found is not None, output
    assert codes is not None, output
    return f"{found[1].decode()} {found[2].decode()} {codes[1].decode()}"


@pytest.mark.parametrize("flags", [("-m", "50"), ("-m", "50", "-w", "10", "-W", "12"), ("--h1",)])
async def test_h2load_loads_the_gateway(clear: Served, folder: Path, flags: tuple[str, ...]) -> None:
    url = f"{clear.gateway_url}/v1/chat/completions"
    output = await run("h2load", "-n", "200", "-c", "10", *flags, *JSON, "-d", chat(folder, 2_000), url)
    assert succeeded(output) == "200 200 200"


async def test_h2load_loads_the_gateway_over_tls(secure: Served) -> None:
    output = await run("h2load", "-n", "500", "-c", "10", "-m", "50", f"https://127.0.0.1:{secure.gateway}/v1/models")
    assert b"Application protocol: h2" in output
    assert succeeded(output) == "500 500 500"


async def test_h2load_loads_the_picker(clear: Served, folder: Path) -> None:
    asked = folder / "asked"
    asked.write_bytes(ASKED)
    url = f"http://127.0.0.1:{clear.picker}/{CHECK}"
    output = await run("h2load", "-n", "2000", "-c", "10", "-m", "100", *GRPC, "-d", asked, url)
    assert succeeded(output) == "2000 2000 2000"

import asyncio
import json
import ssl
from pathlib import Path

import pytest

from kinference.config.values import HostPort
from kinference.errors import ConfigError
from kinference.ports import UpstreamRequest
from kinference.runtime.sandbox import SandboxOptions, sandbox_router
from kinference.wire.http1.upstream import Http1Upstream

ANY = HostPort("127.0.0.1", 0)
ROUTES = "routes: [{name: inference.local, endpoint: 'mock://x', model: m, protocols: [model_discovery], api_key: k}]"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "routes.yaml"
    path.write_text(ROUTES)
    return path


async def asked(port: int) -> tuple[int, object]:
    async with Http1Upstream() as upstream:
        answer = await upstream.send(UpstreamRequest("GET", f"http://127.0.0.1:{port}", "/v1/models", ()))
        content = b"".join([chunk async for chunk in answer.chunks()])
        await answer.close()
        return answer.status, json.loads(content)


async def test_routes_of_a_file_are_served_plainly_and_in_tunnels(file: Path, tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.pem"
    async with sandbox_router(SandboxOptions(ANY, ANY, {}, file, "", ca_file)) as ports:
        status, models = await asked(ports.listen)
        assert status == 200
        assert "'id': 'm'" in str(models)
        reader, writer = await asyncio.open_connection("127.0.0.1", ports.proxy)
        writer.write(b"CONNECT inference.local:443 HTTP/1.1\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        await writer.start_tls(ssl.create_default_context(cafile=ca_file), server_hostname="inference.local")
        writer.write(b"GET /v1/models HTTP/1.1\r\nhost: inference.local\r\n\r\n")
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_without_a_control_plane_it_starts_and_says_so() -> None:
    async with sandbox_router(SandboxOptions(ANY, ANY, {}, None, "http://127.0.0.1:1")) as ports:
        assert (await asked(ports.listen))[0] == 503


async def test_a_certificate_that_cannot_be_written_is_told(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ca\.pem cannot be written"):
        async with sandbox_router(SandboxOptions(ANY, ANY, {}, file, "", tmp_path / "nowhere" / "ca.pem")):
            pass


async def test_a_taken_port_is_told(file: Path) -> None:
    async with sandbox_router(SandboxOptions(ANY, ANY, {}, file)) as ports:
        taken = HostPort("127.0.0.1", ports.proxy)
        with pytest.raises(ConfigError, match="cannot be listened on"):
            async with sandbox_router(SandboxOptions(ANY, taken, {}, file)):
                pass


@pytest.mark.parametrize(
    ("variable", "problem"),
    [("OPENSHELL_TLS_CA", "nowhere cannot be read: No such file"), ("OPENSHELL_TLS_CERT", "nowhere cannot be read")],
)
async def test_a_file_of_tls_that_cannot_be_read_is_named(variable: str, problem: str, tmp_path: Path) -> None:
    environ = {variable: str(tmp_path / "nowhere")}
    with pytest.raises(ConfigError, match=f"{variable}.*{problem}"):
        async with sandbox_router(SandboxOptions(ANY, ANY, environ, None, "https://127.0.0.1:1")):
            pass


async def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cert").write_text("x")
    environ = {"OPENSHELL_TLS_CERT": str(tmp_path / "cert")}
    with pytest.raises(ConfigError, match="set both of OPENSHELL_TLS_KEY and OPENSHELL_TLS_CERT"):
        async with sandbox_router(SandboxOptions(ANY, ANY, environ, None, "https://127.0.0.1:1")):
            pass

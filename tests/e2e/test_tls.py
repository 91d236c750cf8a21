"""TLS and HTTP/2 as clients meet them: the official one, over the library that it uses anyway."""

import json
import ssl
from pathlib import Path

import httpx2
import pytest
from openai import OpenAI

from tests.e2e.processes import engine, run, serve
from tests.unit.wire.certificates import Pair, self_signed

CONFIGURATION = """
listen:
  tls:
    cert: {server.certificate}
    key: {server.key}
    client_ca: {caller.certificate}
pools:
  - name: gpu
    endpoints: [{url}]
"""


def trusting(server: Pair, caller: Pair | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(server.certificate))
    if caller is not None:
        context.load_cert_chain(caller.certificate, caller.key)
    return context


def chat(client: OpenAI) -> str:
    chunks = client.chat.completions.create(
        model="demo", messages=[{"role": "user", "content": "Hello"}], max_tokens=5, stream=True
    )
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def test_the_official_client_streams_over_http2_and_mutual_tls(tmp_path: Path) -> None:
    server, caller = self_signed(tmp_path, "server"), self_signed(tmp_path, "caller")
    file = tmp_path / "kinference.yaml"
    with engine("--speed", "50") as url:
        file.write_text(CONFIGURATION.format(server=server, caller=caller, url=url))
        with serve(tmp_path, "--config", str(file), "--wire", "own") as served:
            base, admin = f"https://127.0.0.1:{served.gateway}", f"https://127.0.0.1:{served.admin}"
            for http2, version in ((True, "HTTP/2"), (False, "HTTP/1.1")):
                with httpx2.Client(verify=trusting(server, caller), http2=http2) as http:
                    told = http.get(f"{admin}/readyz")
                    assert (told.status_code, told.http_version) == (200, version)
                    with OpenAI(base_url=f"{base}/v1", api_key="any", max_retries=0, http_client=http) as client:
                        assert chat(client)
                        assert [model.id for model in client.models.list()] == ["demo"]
            with (
                httpx2.Client(verify=trusting(server, None)) as stranger,
                pytest.raises(httpx2.TransportError),
            ):
                stranger.get(f"{base}/v1/models")
            decisions = httpx2.get(f"{admin}/api/v1/decisions", verify=trusting(server, caller))
            assert json.loads(decisions.text)


def test_the_official_client_streams_over_http2_in_clear_text(tmp_path: Path) -> None:
    with (
        engine("--speed", "50") as url,
        serve(tmp_path, "--engine", url, "--wire", "own") as served,
        httpx2.Client(http1=False, http2=True) as http,
        OpenAI(base_url=f"{served.gateway_url}/v1", api_key="any", max_retries=0, http_client=http) as client,
    ):
        assert chat(client)
        assert http.get(f"{served.gateway_url}/v1/models").http_version == "HTTP/2"


def test_the_wire_of_the_libraries_says_that_it_serves_no_tls(tmp_path: Path) -> None:
    server = self_signed(tmp_path, "server")
    file = tmp_path / "kinference.yaml"
    file.write_text(CONFIGURATION.format(server=server, caller=server, url="http://127.0.0.1:1"))
    code, output = run("serve", "--config", str(file), "--wire", "grpcio")
    assert code == 1
    assert "listen.tls: the wire of the libraries serves no TLS; pass --wire own" in output

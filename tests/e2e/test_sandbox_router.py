"""A program in a sandbox: an official client through the tunnel, by the routes of a running control plane."""

import ssl
import time
from pathlib import Path

import pytest
from openai import BadRequestError, DefaultHttpxClient, OpenAI, PermissionDeniedError
from openai.types.chat import ChatCompletionUserMessageParam

from tests.e2e.processes import PATIENCE_S, Process, engine, process, run, serve

ENVIRON = {"KINFERENCE_SECRET_KEY": "ab" * 32, "KEY": "sk-very-secret"}


def client(router: Process, ca_file: Path) -> OpenAI:
    """Trusts the sandbox's authority and nothing else; knows the proxy from the ready line."""
    proxy = router.wait_for(r"proxy for https://inference\.local (http://\S+)")[1]
    trust = ssl.create_default_context(cafile=ca_file)
    http = DefaultHttpxClient(proxy=proxy, verify=trust, timeout=30)
    return OpenAI(base_url="https://inference.local/v1", api_key="anything", max_retries=0, http_client=http)


def text_of(openai: OpenAI, model: str) -> str:
    asked: ChatCompletionUserMessageParam = {"role": "user", "content": "Hello"}
    chunks = openai.chat.completions.create(model=model, messages=[asked], max_tokens=4, stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def test_a_program_reaches_the_routes_model_whatever_it_asks_for(tmp_path: Path) -> None:
    config, ca_file = tmp_path / "kinference.yaml", tmp_path / "ca.pem"
    config.write_text(f"control: {{store: 'sqlite:///{tmp_path}/control.db'}}")
    flags = ("--listen", "127.0.0.1:0", "--proxy", "127.0.0.1:0", "--ca-file", str(ca_file))
    with engine("--speed", "50") as url, serve(tmp_path, "--config", str(config), env=ENVIRON) as served:
        admin = ("--admin", served.admin_url)
        leads = ("--credential-env", "OPENAI_API_KEY=KEY", "--config", f"OPENAI_BASE_URL={url}")
        assert run("provider", "create", "p", "--type", "openai", *leads, *admin, env=ENVIRON)[0] == 0
        assert run("route", "set", "--provider", "p", "--model", "demo", *admin)[0] == 0
        variables = {
            "OPENSHELL_ENDPOINT": f"http://127.0.0.1:{served.picker}",
            "OPENSHELL_ROUTE_REFRESH_INTERVAL_SECS": "1",
        }
        with process("sandbox-router", *flags, env=variables) as router:
            with client(router, ca_file) as openai:
                assert text_of(openai, "any-model-at-all")
                assert [model.id for model in openai.models.list()] == ["demo"]
                with pytest.raises(PermissionDeniedError) as refusal:
                    openai.files.list()
                assert refusal.value.response.json() == {"error": "connection not allowed by policy"}
                assert run("provider", "update", "p", "--config", "OPENAI_BASE_URL=mock://now", *admin)[0] == 0
                deadline = time.monotonic() + PATIENCE_S
                while "mock" not in str(openai.models.list().data) and time.monotonic() < deadline:
                    time.sleep(0.1)
                assert "mock" in str(openai.models.list().data)
            router.stop()
            assert "very-secret" not in "".join(router.output)


def test_routes_of_a_file_need_no_control_plane(tmp_path: Path) -> None:
    routes, ca_file = tmp_path / "routes.yaml", tmp_path / "ca.pem"
    routes.write_text(
        "routes:\n- {name: inference.local, endpoint: 'mock://x', model: my-model, protocols: [openai_chat_completions],"
        " api_key_env: KEY}\n"
    )
    flags = ("--listen", "127.0.0.1:0", "--proxy", "127.0.0.1:0", "--ca-file", str(ca_file))
    with (
        process("sandbox-router", "--routes", str(routes), *flags, env=ENVIRON) as router,
        client(router, ca_file) as openai,
    ):
        completion = openai.chat.completions.create(model="x", messages=[{"role": "user", "content": "Hello"}])
        assert completion.model == "my-model"
        assert completion.choices[0].message.content == "Hello from openshell mock backend"
        with pytest.raises(BadRequestError) as refusal:
            openai.embeddings.create(model="x", input="y")
        assert refusal.value.response.json() == {"error": "no compatible inference route available"}

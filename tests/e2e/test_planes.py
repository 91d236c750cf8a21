"""Each plane as a process of its own: a request goes through all three, and each outlives the others' absence."""

import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from openai import APIStatusError, OpenAI

from tests.e2e.processes import FREE_PORTS, engine, process, run

FREE = FREE_PORTS | {"KINFERENCE_LISTEN_CONTROL": "127.0.0.1:0", "KINFERENCE_SECRET_KEY": "ab" * 32}
ROUTES = "backends: [{name: cloud, api: openai_chat, route: inference.local, models: {chat: demo}}]\n"


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def asked(client: OpenAI, model: str) -> str:
    """An answer's text, once whatever it needs has been found."""
    deadline = time.monotonic() + 30
    while True:
        try:
            messages = [{"role": "user", "content": "Hello"}]
            told = client.chat.completions.create(model=model, messages=messages, max_tokens=3)  # type: ignore[arg-type] # plain dictionaries are what users write
            return told.choices[0].message.content or ""
        except APIStatusError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def test_three_processes_serve_what_one_does(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("sk-up")
    with engine("--speed", "50") as url:
        common = f"pools: [{{name: gpu, models: [demo], endpoints: ['{url}']}}]\n" + ROUTES
        file = tmp_path / "kinference.yaml"
        file.write_text(common + f"control: {{store: 'sqlite:///{tmp_path}/control.db'}}\n")
        flags = ("serve", "--config", str(file), "--planes")
        with process(*flags, "control", env=FREE) as control:
            ready = control.wait_for(r"ready, control (\S+), admin (\S+)")
            record = ("--type", "openai", "--credential-file", f"OPENAI_API_KEY={key}")
            where = ("--config", f"OPENAI_BASE_URL={url}/v1", "--admin", ready[2])
            assert run("provider", "create", "p", *record, *where)[0] == 0
            assert run("route", "set", "--provider", "p", "--model", "demo", "--admin", ready[2])[0] == 0
            with process(*flags, "picker", env=FREE) as picker:
                port = picker.wait_for(r"ready, picker \S+:(\d+), admin")[1]
                file.write_text(common + f"planes: {{picker: 'http://127.0.0.1:{port}', control: 'http://{ready[1]}'}}")
                with process(*flags, "gateway", env=FREE) as gateway:
                    told = gateway.wait_for(r"ready, gateway (\S+), admin (\S+)")
                    with OpenAI(base_url=f"{told[1]}/v1", api_key="x", max_retries=0) as client:
                        assert asked(client, "demo")
                        assert asked(client, "chat")
                        control.stop()
                        assert asked(client, "chat")
                        assert get(f"{told[2]}/readyz")[0] == 200
                        picker.stop()
                        with pytest.raises(APIStatusError) as refused:
                            client.chat.completions.create(model="demo", messages=[])
                        assert refused.value.status_code == 503
                        assert "retry-after" in refused.value.response.headers
                        assert port not in refused.value.message
                        assert "planes.picker" in get(f"{told[2]}/readyz")[1]


def test_a_gateway_that_does_not_know_its_picker_says_what_to_write(tmp_path: Path) -> None:
    file = tmp_path / "kinference.yaml"
    file.write_text(ROUTES)
    code, output = run("serve", "--config", str(file), "--planes", "gateway", env=FREE)
    assert code == 1
    assert "planes.picker" in output
    assert "Traceback" not in output

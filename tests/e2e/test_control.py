"""Provider records and routes as an operator uses them: real processes, the command line, a request through the gateway."""

import json
import time
from pathlib import Path

from openai import APIStatusError, OpenAI

from tests.e2e.processes import PATIENCE_S, engine, run, serve

KEY_VARIABLE = {"KINFERENCE_SECRET_KEY": "ab" * 32}
SECRET = {"MY_KEY": "sk-very-secret-key"}


def configuration(folder: Path) -> Path:
    file = folder / "kinference.yaml"
    file.write_text(
        "backends: [{name: cloud, api: openai_chat, provider: cloud-record, models: {chat: demo}}]\n"
        f"control: {{store: 'sqlite:///{folder}/control.db'}}\n"
    )
    return file


def answered(client: OpenAI) -> str:
    """A chat's text, once the backend has been resolved."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            messages = [{"role": "user", "content": "Hello"}]
            completion = client.chat.completions.create(model="chat", messages=messages, max_tokens=3)  # type: ignore[arg-type] # plain dictionaries are what users write
            return completion.choices[0].message.content or ""
        except APIStatusError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def test_a_backend_is_served_through_a_record_made_while_it_runs(tmp_path: Path) -> None:
    config = configuration(tmp_path)
    with engine("--speed", "50") as url, serve(tmp_path, "--config", str(config), env=KEY_VARIABLE) as served:

        def control(*words: str) -> tuple[int, str]:
            return run(*words, "--admin", served.admin_url, env=SECRET)

        flags = ("--credential-env", "OPENAI_API_KEY=MY_KEY", "--config", f"OPENAI_BASE_URL={url}/v1")
        assert control("provider", "create", "cloud-record", "--type", "openai", *flags) == (
            0,
            "Created provider cloud-record\n",
        )
        with OpenAI(base_url=f"{served.gateway_url}/v1", api_key="anything", max_retries=0) as client:
            assert answered(client)
        code, output = control("provider", "delete", "cloud-record")
        assert code == 1
        assert "used by backend default/cloud" in output
        code, output = control("route", "set", "--provider", "cloud-record", "--model", "demo")
        assert code == 0
        assert f"    - {url}/v1/chat/completions (openai_chat_completions)" in output
        code, output = control("route", "set", "--provider", "cloud-record", "--model", "no-such-model")
        assert code == 1
        assert "failed to verify inference endpoint" in output
        (route,) = json.loads(control("route", "get", "--output", "json")[1])["routes"]
        assert (route["model"], route["version"]) == ("demo", 1)
        served.process.stop()
        log = "".join(served.process.output)
    assert "provider created" in log
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("control.db*"))
    assert "very-secret" not in log
    assert b"very-secret" not in stored


def test_records_survive_and_move_by_backup(tmp_path: Path) -> None:
    config = configuration(tmp_path)
    with serve(tmp_path, "--config", str(config), env=KEY_VARIABLE) as served:
        flags = ("--type", "openai", "--credential-env", "OPENAI_API_KEY=MY_KEY", "--admin", served.admin_url)
        assert run("provider", "create", "p", *flags, env=SECRET)[0] == 0
    backup = tmp_path / "records.jsonl"
    assert run("store", "backup", str(backup), "--config", str(config), env=KEY_VARIABLE)[0] == 0
    (tmp_path / "control.db").unlink()
    assert run("store", "restore", str(backup), "--config", str(config), env=KEY_VARIABLE) == (
        0,
        "Restored 1 records\n",
    )
    with serve(tmp_path, "--config", str(config), env=KEY_VARIABLE) as served:
        assert "p" in run("provider", "list", "--admin", served.admin_url)[1]

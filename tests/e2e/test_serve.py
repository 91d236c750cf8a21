"""The product as a newcomer starts it: real processes, real sockets, real clients."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from anthropic import Anthropic
from openai import InternalServerError, NotFoundError, OpenAI

from tests.e2e.processes import FREE_PORTS, PATIENCE_S, PROGRAM, engine, process, run, serve


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def eventually(claim: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def chat(client: OpenAI, text: str = "Hello", model: str = "demo") -> str:
    chunks = client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": text}], max_tokens=5, stream=True
    )
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


@pytest.mark.parametrize("wire", ["own", "grpcio"])
def test_official_clients_stream_through_serve_without_a_file(tmp_path: Path, wire: str) -> None:
    with engine("--speed", "50") as url, serve(tmp_path, "--engine", url, "--wire", wire) as served:
        eventually(lambda: get(f"{served.admin_url}/readyz")[0] == 200)
        with OpenAI(base_url=f"{served.gateway_url}/v1", api_key="anything", max_retries=0) as client:
            assert chat(client)
            assert [model.id for model in client.models.list()] == ["demo"]
            with pytest.raises(NotFoundError):
                chat(client, model="nope")
        with Anthropic(base_url=served.gateway_url, api_key="anything", max_retries=0) as anthropic:
            ask = anthropic.messages.stream(model="demo", max_tokens=5, messages=[{"role": "user", "content": "Hello"}])
            with ask as stream:
                assert "".join(stream.text_stream)
                assert stream.get_final_message().usage.output_tokens == 5


def test_what_was_refused_is_made_again_from_what_the_admin_port_tells(tmp_path: Path) -> None:
    with engine("--speed", "50") as url:
        file = tmp_path / "kinference.yaml"
        backend = "{name: far, api: openai_chat, base_url: 'http://127.0.0.1:9', models: {best: b}}"
        file.write_text(f"pools: [{{name: p, endpoints: ['{url}']}}]\nbackends: [{backend}]\nrouting: {{record: 9}}\n")
        with serve(tmp_path, "--config", str(file)) as served:
            eventually(lambda: get(f"{served.admin_url}/readyz")[0] == 200)
            client = OpenAI(base_url=f"{served.gateway_url}/v1", api_key="anything", max_retries=0)
            with client, pytest.raises(NotFoundError):
                chat(client, model="nope")
            status, told = get(f"{served.admin_url}/api/v1/refusals")
    assert status == 200
    (tmp_path / "refusals.json").write_text(told)
    code, output = run("explain", "--recording", str(tmp_path / "refusals.json"))
    assert (code, "1 of 1 decisions" in output) == (0, True)


def test_the_admin_port_accounts_for_what_was_served(tmp_path: Path) -> None:
    with engine("--speed", "50") as url, serve(tmp_path, "--engine", url) as served:
        eventually(lambda: get(f"{served.admin_url}/readyz")[0] == 200)
        with OpenAI(base_url=f"{served.gateway_url}/v1", api_key="anything", max_retries=0) as client:
            for _ in range(3):
                chat(client)
        (endpoint,) = json.loads(get(f"{served.admin_url}/api/v1/endpoints")[1])["endpoints"]
        assert (endpoint["address"], endpoint["picks"], endpoint["requests"]) == (url.removeprefix("http://"), 3, 0)
        decisions = json.loads(get(f"{served.admin_url}/api/v1/decisions?limit=2")[1])["decisions"]
        assert len(decisions) == 2
        assert all(decision["ended"] == "final" and decision["outcome"] == "ok" for decision in decisions)
        assert decisions[0]["explanation"]["candidates"][0]["terms"]
        metrics = get(f"{served.admin_url}/metrics")[1]
        assert 'kinference_picker_picks_total{outcome="ok"} 3.0' in metrics
        assert "kinference_picker_buffered_bytes 0.0" in metrics


def drain(admin_url: str, address: str) -> None:
    request = urllib.request.Request(
        f"{admin_url}/api/v1/endpoints/{address}",
        b'{"draining": true}',
        {"content-type": "application/json"},
        method="PATCH",
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert json.load(answer)["endpoints"][0]["draining"]


def test_an_engine_that_drains_ends_what_it_has_and_gets_nothing_new(tmp_path: Path) -> None:
    with engine("--decode-ms", "40") as url, serve(tmp_path, "--engine", url) as served:
        eventually(lambda: get(f"{served.admin_url}/readyz")[0] == 200)
        words = (url.removeprefix("http://"), "--admin", served.admin_url)
        with OpenAI(base_url=f"{served.gateway_url}/v1", api_key="anything", max_retries=0) as client:
            chunks = client.chat.completions.create(
                model="demo", messages=[{"role": "user", "content": "Hello"}], max_tokens=60, stream=True
            )
            next(chunks)
            drain(served.admin_url, words[0])
            with pytest.raises(InternalServerError, match="1 draining; end the drain or add an endpoint"):
                chat(client)
            assert "every endpoint drains" in get(f"{served.admin_url}/readyz")[1]
            assert 'kinference_picker_draining{destination="default/' in get(f"{served.admin_url}/metrics")[1]
            reasons = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
            assert reasons[-1] == "length"
            code, output = run("endpoint", "drain", *words, "--wait", "30")
            assert (code, "drained" in output) == (0, True), output
            assert run("endpoint", "undrain", *words)[0] == 0
            assert chat(client)


def test_sigterm_lets_a_stream_under_way_finish(tmp_path: Path) -> None:
    with engine("--decode-ms", "40") as url, serve(tmp_path, "--engine", url) as served:
        eventually(lambda: get(f"{served.admin_url}/readyz")[0] == 200)
        with OpenAI(base_url=f"{served.gateway_url}/v1", api_key="anything", max_retries=0) as client:
            chunks = client.chat.completions.create(
                model="demo", messages=[{"role": "user", "content": "Hello"}], max_tokens=40, stream=True
            )
            next(chunks)
            served.process.popen.send_signal(signal.SIGTERM)
            reasons = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
        assert reasons[-1] == "length"
        code, output = served.process.finish()
        assert code == 0, output
        assert "Traceback" not in output


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_it_at_once_whatever_is_under_way(tmp_path: Path, second: signal.Signals) -> None:
    with engine("--decode-ms", "500") as url, serve(tmp_path, "--engine", url) as served:
        with OpenAI(base_url=f"{served.gateway_url}/v1", api_key="anything", max_retries=0) as client:
            chunks = client.chat.completions.create(
                model="demo", messages=[{"role": "user", "content": "Hello"}], stream=True
            )
            next(iter(chunks))
            served.process.popen.send_signal(signal.SIGINT)
            served.process.wait_for("draining")
            served.process.popen.send_signal(second)
            code, output = served.process.finish()
            chunks.close()
        assert code == -second
        assert "Traceback" not in output


def test_a_changed_file_is_taken_over_and_a_bad_one_is_not(tmp_path: Path) -> None:
    file = tmp_path / "kinference.yaml"
    with engine("--speed", "50") as url:
        file.write_text(f"pools: [{{name: a, endpoints: ['{url}']}}]\n")
        with serve(tmp_path, "--config", str(file)) as served:
            eventually(lambda: get(f"{served.admin_url}/readyz")[0] == 200)
            with OpenAI(base_url=f"{served.gateway_url}/v1", api_key="anything", max_retries=0) as client:
                with pytest.raises(NotFoundError):
                    chat(client, model="alias")
                file.write_text(f"{file.read_text()}models: [{{model: alias, targets: [{{pool: a, model: demo}}]}}]\n")
                served.process.wait_for("configuration taken over")
                assert chat(client, model="alias")
                file.write_text("pools: [{nam: a}]\n")
                served.process.wait_for(r"not taken over.*nam")
                assert chat(client, model="alias")
                file.write_text("routing: {policy: expected_latencie}\n")
                served.process.wait_for(r"not taken over.*expected_latency")
                assert chat(client, model="alias")


def test_sighup_reads_the_file_again(tmp_path: Path) -> None:
    file = tmp_path / "kinference.yaml"
    file.write_text("pools: [{name: a, endpoints: ['http://127.0.0.1:1']}]\n")
    with serve(tmp_path, "--config", str(file)) as served:
        file.write_text("routing: {policy: round_robin}\n")
        served.process.popen.send_signal(signal.SIGHUP)
        served.process.wait_for("configuration taken over")
        assert served.process.popen.poll() is None


def test_a_hangup_before_it_is_ready_or_while_it_drains_ends_nothing(tmp_path: Path) -> None:
    file, ports_file = tmp_path / "kinference.yaml", tmp_path / "ports.json"
    with socket.create_server(("127.0.0.1", 0)) as engine_that_says_nothing:
        pool = f"pools: [{{name: a, endpoints: ['http://127.0.0.1:{engine_that_says_nothing.getsockname()[1]}']}}]\n"
        file.write_text(pool)
        with process("serve", "--config", str(file), "--ports-file", str(ports_file), env=FREE_PORTS) as serving:
            asked, _ = engine_that_says_nothing.accept()  # by its first look, which comes before "ready"
            with asked:
                file.write_text(f"{pool}routing: {{policy: round_robin}}\n")
                serving.popen.send_signal(signal.SIGHUP)
                engine_that_says_nothing.close()
            serving.wait_for(r"^kinference: ready")
            serving.wait_for("configuration taken over")
            gateway = json.loads(ports_file.read_text())["gateway"]
            with socket.create_connection(("127.0.0.1", gateway)) as client:
                client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\n")
                client.sendall(b"content-type: application/json\r\ncontent-length: 9\r\n\r\n")
                assert client.recv(100).startswith(b"HTTP/1.1 100 ")  # so that there is something to wait for
                serving.popen.send_signal(signal.SIGTERM)
                serving.wait_for("draining")
                serving.popen.send_signal(signal.SIGHUP)
            code, output = serving.finish()
    assert code == 0, output


@pytest.mark.parametrize("how", ["the disk is full", "nobody reads"])
def test_it_serves_though_nothing_can_be_written(tmp_path: Path, how: str) -> None:
    """Neither the notes and the log on stderr nor the ready line on stdout."""
    ports_file, file = tmp_path / "ports.json", tmp_path / "kinference.yaml"
    file.write_text("pools: [{name: a, endpoints: ['http://127.0.0.1:1']}]\nlimits: {connections_max: 4000000}\n")
    reader, pipe = os.pipe()
    os.close(reader)
    full = os.open("/dev/full", os.O_WRONLY)
    output = full if how == "the disk is full" else pipe
    command: list[str | Path] = [PROGRAM, "serve", "--config", file, "--ports-file", ports_file]
    with subprocess.Popen(command, stdout=output, stderr=output, env=os.environ | FREE_PORTS) as serving:
        os.close(pipe)
        os.close(full)
        try:
            eventually(ports_file.exists)
            url = f"http://127.0.0.1:{json.loads(ports_file.read_text())['gateway']}/v1/chat/completions"
            for _ in range(3):
                with pytest.raises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(urllib.request.Request(url, data=b"{}"), timeout=60)
                with refused.value as error:
                    assert error.code == 400
            serving.terminate()
            assert serving.wait(timeout=PATIENCE_S) == 0
        finally:
            serving.kill()


def test_an_unreachable_engine_is_named_and_does_not_stop_the_start(tmp_path: Path) -> None:
    with serve(tmp_path, "--engine", "http://127.0.0.1:1") as served:
        status, text = get(f"{served.admin_url}/readyz")
        assert status == 503
        assert "127.0.0.1:1" in text
        request = urllib.request.Request(
            f"{served.gateway_url}/v1/chat/completions",
            data=b'{"model":"demo","messages":[{"role":"user","content":"x"}]}',
            headers={"content-type": "application/json"},
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=10)
        with refused.value as error:
            assert error.code in (404, 503)
            assert "demo" in error.read().decode()


@pytest.mark.parametrize("plane", ["picker", "gateway", "admin"])
def test_a_port_in_use_is_one_line_with_the_key_to_change(plane: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        env = FREE_PORTS | {f"KINFERENCE_LISTEN_{plane.upper()}": address}
        code, output = run("serve", "--engine", "http://127.0.0.1:1", env=env)
    assert code == 1
    assert f"kinference: listen.{plane}: cannot listen on {address}" in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("serve", "--engine", "http://127.0.0.1:1", "--nope"), 2, "--nope"),
        (("serve",), 2, "--config"),
        (("serve", "--engine", "gpu-1:8000/x y"), 1, "--engine"),
        (("serve", "--config", "/nowhere/kinference.yaml"), 1, "/nowhere/kinference.yaml"),
        (("frobnicate",), 2, "frobnicate"),
    ],
)
def test_wrong_arguments_are_told_in_words(arguments: tuple[str, ...], code: int, says: str) -> None:
    got, output = run(*arguments, env=FREE_PORTS)
    assert got == code, output
    assert says in output
    assert "Traceback" not in output


def test_bad_yaml_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("pools:\n  - name: a\n    endpints: []\n")
    code, output = run("serve", "--config", str(file), env=FREE_PORTS)
    assert code == 1
    assert "line 3" in output
    assert "endpoints" in output


def test_listening_off_loopback_without_keys_is_refused(tmp_path: Path) -> None:
    env = FREE_PORTS | {"KINFERENCE_LISTEN_GATEWAY": "0.0.0.0:0"}
    code, output = run("serve", "--engine", "http://127.0.0.1:1", env=env)
    assert code == 1
    assert "--insecure" in output
    with process("serve", "--engine", "http://127.0.0.1:1", "--insecure", env=env) as insecure:
        insecure.wait_for(r"^kinference: ready")


def test_json_logs_are_one_line_a_request(tmp_path: Path) -> None:
    flags = ("--log-format", "json")
    with engine("--speed", "50") as url, serve(tmp_path, "--engine", url, *flags) as served:
        eventually(lambda: get(f"{served.admin_url}/readyz")[0] == 200)
        with OpenAI(base_url=f"{served.gateway_url}/v1", api_key="sk-very-secret-key", max_retries=0) as client:
            chat(client, "please do not log me")
        line = served.process.wait_for(r"^\{.*kinference\.gateway.*").string
        fields = json.loads(line)
        assert (fields["status"], fields["model"], fields["api"]) == (200, "demo", "openai_chat")
        served.process.popen.send_signal(signal.SIGTERM)
        _, output = served.process.finish()
    assert "please do not log me" not in output
    assert "sk-very-secret-key" not in output

"""curl as a program of a sandbox, by the proxy and the authority that it is given."""

import json
import shutil
import subprocess
from pathlib import Path

from tests.e2e.processes import engine, process
from tests.peers.conftest import absent

ENVIRON = {"KEY": "sk-very-secret"}


def test_curl_is_served_through_the_tunnel(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        absent("curl", "Debian has it in curl")
    routes, ca_file = tmp_path / "routes.yaml", tmp_path / "ca.pem"
    with engine("--speed", "50") as url:
        routes.write_text(
            f"routes:\n- {{name: inference.local, endpoint: '{url}', model: demo, protocols: [openai_chat_completions,"
            " model_discovery], api_key_env: KEY}\n"
        )
        flags = ("--listen", "127.0.0.1:0", "--proxy", "127.0.0.1:0", "--ca-file", str(ca_file))
        with process("sandbox-router", "--routes", str(routes), *flags, env=ENVIRON) as router:
            proxy = router.wait_for(r"proxy for https://inference\.local (http://\S+)")[1]
            curl = ("curl", "--silent", "--show-error", "--max-time", "30", "--proxy", proxy, "--cacert", str(ca_file))
            listed = subprocess.run([*curl, "https://inference.local/v1/models"], capture_output=True, check=True)
            assert [model["id"] for model in json.loads(listed.stdout)["data"]] == ["demo"]
            body = '{"model": "x", "stream": true, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3}'
            asked = ("--no-buffer", "--header", "content-type: application/json", "--data", body)
            chat = (*curl, *asked, "https://inference.local/v1/chat/completions")
            streamed = subprocess.run(chat, capture_output=True, check=True).stdout
            assert streamed.count(b"data: ") > 3
            assert streamed.rstrip().endswith(b"data: [DONE]")
            untrusted = subprocess.run(
                [*curl[:-2], "https://inference.local/v1/models"], capture_output=True, check=False
            )
            assert untrusted.returncode == 60  # the authority is the sandbox's own

"""Tokens of a real process: refused exposure, the caller of the examples, and a token file that changes under it."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.e2e.processes import engine, run, serve

EXAMPLE = Path(__file__).parents[2] / "examples/caller.py"
BODY = json.dumps({"model": "demo", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}).encode()


def configuration(folder: Path, url: str = "http://127.0.0.1:1", *, tokens: bool = True) -> Path:
    file = folder / "kinference.yaml"
    held = [("mesh", "picker"), ("prometheus", "metrics")]
    access = {"tokens": [{"name": name, "role": role, "token": f"file:{folder / name}"} for name, role in held]}
    pools = [{"name": "gpu", "endpoints": [url], "models": ["demo"]}]
    file.write_text(json.dumps({"pools": pools, **({"access": access} if tokens else {})}))
    return file


def call(picker: int, *flags: str) -> tuple[int, str]:
    command = [sys.executable, str(EXAMPLE), "--picker", f"127.0.0.1:{picker}", *flags]
    done = subprocess.run(command, input=BODY, capture_output=True, timeout=60, check=False)
    return done.returncode, done.stderr.decode()


def scrape(admin_url: str, token: str) -> int:
    try:
        request = Request(f"{admin_url}/metrics", headers={"authorization": f"Bearer {token}"})
        with urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code


def test_a_caller_shows_its_token_and_the_file_may_change(tmp_path: Path) -> None:
    mesh, prometheus = tmp_path / "mesh", tmp_path / "prometheus"
    mesh.write_text("first-mesh-token\n")
    prometheus.write_text("first-scrape-token\n")
    with engine(model="demo") as url:
        file = configuration(tmp_path, url)
        with serve(tmp_path, "--config", str(file)) as served:
            assert call(served.picker) == (
                1,
                "HTTP 502: this needs authorization: Bearer TOKEN, with a token that is known here\n",
            )
            assert call(served.picker, "--token-file", str(mesh)) == (0, "")
            assert call(served.picker, "--token-file", str(prometheus))[1].startswith(
                "HTTP 502: a credential of the role metrics does not open this"
            )
            assert scrape(served.admin_url, "first-scrape-token") == 200
            prometheus.write_text("next-scrape-token\n")
            served.process.wait_for("configuration taken over")
            assert [scrape(served.admin_url, f"{which}-scrape-token") for which in ("first", "next")] == [401, 200]
            prometheus.write_text("\n")
            served.process.wait_for("configuration not taken over, the old one stays: .*prometheus is empty")
            assert scrape(served.admin_url, "next-scrape-token") == 200
    assert not [line for line in served.process.output if "-token" in line]


def test_a_port_for_strangers_needs_tokens_also_after_a_reload(tmp_path: Path) -> None:
    for name in ("mesh", "prometheus"):
        (tmp_path / name).write_text("a-token")
    (tmp_path / "prometheus").write_text("another-token")
    bare = configuration(tmp_path, tokens=False)
    everywhere = {f"KINFERENCE_LISTEN_{plane}": "0.0.0.0:0" for plane in ("PICKER", "ADMIN")}
    code, output = run("serve", "--config", str(bare), env=everywhere)
    assert code == 1
    assert "listen.picker: 0.0.0.0:0 can be reached from outside this machine" in output
    guarded = configuration(tmp_path)
    with serve(tmp_path, "--config", str(guarded), env=everywhere) as served:
        configuration(tmp_path, tokens=False)
        served.process.wait_for(r"configuration not taken over, the old one stays: listen\.picker")
        assert [scrape(served.admin_url, token) for token in ("", "another-token")] == [401, 200]

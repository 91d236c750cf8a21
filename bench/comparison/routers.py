"""The routers of the comparison: how each is started before the engine, and what it needs to be asked."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

PATIENCE_S = 90.0
NATIVE = Path(__file__).parents[2] / ".native"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
NGINX = """daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log stderr error;
events {{ worker_connections 8192; }}
http {{
  access_log off; client_max_body_size 0; client_body_buffer_size 4m; keepalive_requests 1000000000;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  upstream engine {{ server 127.0.0.1:{engine}; keepalive 2048; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port} backlog=4096;
    location / {{ proxy_pass http://engine; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }} }}
}}
"""
ENVOY = """
static_resources:
  listeners:
  - address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: all
          route_config:
            virtual_hosts:
            - {{name: all, domains: ["*"], routes: [{{match: {{prefix: "/"}}, route: {{cluster: engine, timeout: 0s}}}}]}}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
  clusters:
  - name: engine
    type: STATIC
    circuit_breakers: {{thresholds: [{{max_connections: 65536, max_pending_requests: 65536, max_requests: 65536}}]}}
    load_assignment:
      cluster_name: engine
      endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {engine}}}}}}}}}]}}]
"""
LITELLM = """
model_list: [{{model_name: bench, litellm_params: {{model: openai/bench, api_base: "http://127.0.0.1:{engine}/v1", api_key: none}}}}]
"""


@dataclass(frozen=True)
class Router:
    """How one is started. `{port}`, `{other}`, `{engine}` and `{file}` are filled in."""

    name: str
    command: tuple[str, ...]
    file: str = ""
    """The content of a configuration file."""
    env: Mapping[str, str] = field(default_factory=dict)
    headers: str = ""
    """Header lines that every request to it has to carry."""
    is_slow: bool = False
    """Whether it does hundreds of requests a second, so that it is asked with fewer at a time."""


@dataclass(frozen=True)
class Running:
    """A router that answers."""

    router: Router
    port: int
    admin: int
    pid: int


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def ours(name: str, program: Path, wire: str) -> Router:
    listen = {"GATEWAY": "{port}", "PICKER": "0", "ADMIN": "{other}"}
    env = {f"KINFERENCE_LISTEN_{plane}": f"127.0.0.1:{port}" for plane, port in listen.items()}
    flags = ("serve", "--log-level", "warning", "--engine", "http://127.0.0.1:{engine}", "--wire", wire)
    return Router(f"kinference, {name}", (str(program), *flags), env=env)


def builds() -> Iterator[Router]:
    """Ours by either wire, and compiled where `make native` was run."""
    program = Path(sys.executable).with_name("kinference")
    yield ours("own wire", program, "own")
    yield ours("library wire", program, "grpcio")
    compiled = NATIVE / "bin/kinference"
    if compiled.exists():
        yield ours("compiled", compiled, "own")


def rivals(folder: Path) -> Iterator[Router]:
    """Those that are installed."""
    common: tuple[str, ...] = ("--host", "127.0.0.1", "--port", "{port}", "--prometheus-port", "{other}")
    common += ("--worker-urls", "http://127.0.0.1:{engine}", "--log-level", "error")
    sglang, vllm = folder / "routers/bin/sglang-router", folder / "routers/bin/vllm-router"
    if sglang.exists():
        yield Router("SGLang router, cache-aware", (str(sglang), "launch", *common, "--policy", "cache_aware"))
    if vllm.exists():
        yield Router("vLLM router, round robin", (str(vllm), *common, "--policy", "round_robin"))
        yield Router("vLLM router, cache-aware", (str(vllm), *common, "--policy", "cache_aware"))
    if nginx := shutil.which("nginx"):
        yield Router("nginx, plain proxy", (nginx, "-c", "{file}"), NGINX)
    envoy = Path(sys.executable).with_name("envoy")
    if envoy.exists():
        flags = ("--concurrency", "1", "--use-dynamic-base-id", "-l", "error")
        yield Router("Envoy, plain proxy", (str(envoy), "-c", "{file}", *flags), ENVOY)
    litellm = folder / "litellm/bin/litellm"
    if litellm.exists():
        quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False", "LITELLM_LOG": "ERROR"}
        command: tuple[str, ...] = (str(litellm), "--config", "{file}", "--host", "127.0.0.1", "--port", "{port}")
        yield Router("LiteLLM", command, LITELLM, quiet, is_slow=True)
    portkey = folder / "portkey/node_modules/@portkey-ai/gateway/build/start-server.js"
    if portkey.exists():
        headers = "x-portkey-provider: openai\r\nauthorization: Bearer none\r\n"
        headers += "x-portkey-custom-host: http://127.0.0.1:{engine}/v1\r\n"
        command = ("node", str(portkey), "--port={port}", "--headless")
        yield Router("Portkey", command, headers=headers, is_slow=True)


@contextmanager
def running(router: Router, engine: int, folder: Path, core: int) -> Iterator[Running]:
    """A router on one core, once it has answered."""
    port, other = free_port(), free_port()
    place = folder / f"{router.name.replace(' ', '-').replace(',', '')}.yaml"
    values = {"port": port, "other": other, "engine": engine, "file": place, "folder": folder}
    place.write_text(router.file.format(**values))
    command = ["taskset", "-c", str(core), *(part.format(**values) for part in router.command)]
    env = os.environ | {name: value.format(**values) for name, value in router.env.items()}
    with place.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=folder)
    try:
        wait_until_it_answers(router.headers.format(**values), port, process, place.with_suffix(".log"))
        yield Running(router, port, other, process.pid)
    finally:
        for pid in reversed(tree(process.pid)):
            subprocess.run(["kill", "-9", str(pid)], check=False, stderr=subprocess.DEVNULL)
        process.wait()


def wait_until_it_answers(headers: str, port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    body = b'{"model":"bench","messages":[{"role":"user","content":"x"}]}'
    fields = dict(line.split(": ", 1) for line in headers.split("\r\n") if line) | {"content-type": "application/json"}
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urlopen(Request(f"http://127.0.0.1:{port}/v1/chat/completions", body, fields), timeout=10):
                return
        except (URLError, OSError) as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{process.args!r}: {error}\n{log.read_text()[-2000:]}") from error
            time.sleep(0.2)


def stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def tree(root: int) -> list[int]:
    """A process and all that descend from it."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(stat(int(entry.name))[1])
            except OSError:
                continue
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def cpu_seconds(root: int) -> float:
    return sum(int(ticks) for pid in tree(root) for ticks in stat(pid)[11:13]) / TICKS_PER_S


def resident_mb(root: int) -> float:
    pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in tree(root))
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

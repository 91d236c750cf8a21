"""Envoy as a plain HTTP/2 proxy with nothing but a listener, a router and a cluster."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.request import urlopen

PATIENCE_S = 60.0
WINDOWS = {"initial_stream_window_size": 65_536, "initial_connection_window_size": 1_048_576}
"""By default it takes in 16 MiB of each stream, and a puller that stops would go unnoticed."""
HTTP_2 = {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": WINDOWS},
    }
}


def socket(port: int) -> dict[str, object]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def configuration(upstream_port: int, downstream: Mapping[str, int]) -> dict[str, object]:
    router = {
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
    }
    route = {"match": {"prefix": "/"}, "route": {"cluster": "picker", "timeout": "0s"}}
    manager = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "picker",
        "codec_type": "HTTP2",
        "http2_protocol_options": dict(downstream),
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        "http_filters": [router],
    }
    listener = {
        "name": "picker",
        "address": socket(0),
        "filter_chains": [
            {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
        ],
    }
    endpoint = {"endpoint": {"address": socket(upstream_port)}}
    cluster = {
        "name": "picker",
        "type": "STATIC",
        "typed_extension_protocol_options": HTTP_2,
        "load_assignment": {"cluster_name": "picker", "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
    return {"admin": {"address": socket(0)}, "static_resources": {"listeners": [listener], "clusters": [cluster]}}


@asynccontextmanager
async def running_envoy(
    program: Path, upstream_port: int, folder: Path, downstream: Mapping[str, int] = WINDOWS
) -> AsyncIterator[int]:
    """The port on which it proxies to the upstream port; `downstream` are its options of HTTP/2 there."""
    config, admin = folder / "envoy.json", folder / "admin"
    config.write_text(json.dumps(configuration(upstream_port, downstream)))
    flags = ("-c", config, "--admin-address-path", admin, "--concurrency", "1", "--use-dynamic-base-id", "-l", "warn")
    process = await asyncio.create_subprocess_exec(program, *map(str, flags))
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not (admin.exists() and admin.read_text()):
                assert process.returncode is None, "Envoy ended at once"
                await asyncio.sleep(0.05)
            while (port := await asyncio.to_thread(listening_port, admin.read_text())) == 0:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.05)
        yield port
    finally:
        process.terminate()
        await process.wait()


def listening_port(admin: str) -> int:
    """The port of the listener, 0 while it has none."""
    with urlopen(f"http://{admin}/listeners?format=json", timeout=10) as answer:
        statuses = json.loads(answer.read()).get("listener_statuses", [])
    return next((status["local_address"]["socket_address"]["port_value"] for status in statuses), 0)

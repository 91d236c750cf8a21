"""Objects as the API of Kubernetes documents them, in the little that matters here and some that does not."""

import json
from collections.abc import Sequence
from typing import Any

Object = dict[str, Any]


def pod(
    name: str = "a",
    ip: str = "10.0.0.1",
    *,
    ready: bool = True,
    ending: bool = False,
    phase: str = "Running",
    version: str = "5",
) -> Object:
    metadata: Object = {"name": name, "uid": f"uid-{name}", "resourceVersion": version, "labels": {"app": "vllm"}}
    if ending:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    conditions = [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": str(ready)}]
    status = {"phase": phase, "conditions": conditions, "podIPs": [{"ip": ip}]} | ({"podIP": ip} if ip else {})
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": []}, "status": status}


def endpoint(ip: str, *, uid: str = "u", **conditions: bool | None) -> Object:
    return {"addresses": [ip], "conditions": conditions, "targetRef": {"kind": "Pod", "uid": uid}}


def endpoint_slice(*endpoints: Object, name: str = "s", version: str = "5") -> Object:
    metadata = {"name": name, "uid": "x", "resourceVersion": version}
    return {"metadata": metadata, "addressType": "IPv4", "endpoints": list(endpoints), "ports": [{"port": 1}]}


def inference_pool(labels: dict[str, str], *ports: int) -> Object:
    spec = {"selector": {"matchLabels": labels}, "targetPorts": [{"number": port} for port in ports]}
    return {"metadata": {"name": "p", "resourceVersion": "1"}, "spec": spec}


def listed(*items: Object, version: str = "9", more: str = "") -> bytes:
    metadata = {"resourceVersion": version} | ({"continue": more} if more else {})
    return json.dumps({"kind": "List", "metadata": metadata, "items": list(items)}).encode()


def event(kind: str, item: Object) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


def bookmark(version: str) -> bytes:
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": version}})


def failure(code: int) -> bytes:
    return event("ERROR", {"kind": "Status", "status": "Failure", "code": code, "message": "too old"})


def addresses(places: Sequence[Any]) -> list[str]:
    return [place.address for place in places]

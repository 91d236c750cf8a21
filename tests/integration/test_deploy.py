"""What is under deploy/ names nothing that is not there: keys, flags, ports, paths, permissions and metrics.

No cluster and no builder of containers runs here, so what they make of it is not tested.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from kinference.cli.main import parser
from kinference.config.load import parse
from kinference.config.schema import Config
from kinference.dashboard.admin import _OPEN
from kinference.fleet.discovery.kubernetes.source import (
    Asked,
    KubernetesSource,
    Labelled,
    OfInferencePool,
    OfService,
)
from kinference.observe.metrics import TABLE, Kind, Metrics
from kinference.runtime.exposure import refuse_exposure
from tests.unit.fleet.discovery.fakes import Waits
from tests.unit.fleet.discovery.kubernetes.cluster_objects import inference_pool, listed
from tests.unit.fleet.discovery.kubernetes.fakes import FakeApi, Reply, api_of

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SECRETS = "/etc/kinference-secrets"

Object = dict[str, Any]
OBJECTS: list[Object] = [
    each
    for file in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for each in yaml.safe_load_all(file.read_text("utf-8"))
]
CONTAINERFILE = (DEPLOY / "Containerfile").read_text("utf-8")
DASHBOARD = json.loads((DEPLOY / "grafana/dashboard.json").read_text("utf-8"))
HOW_TO = (ROOT / "docs/how-to/run-in-kubernetes.md").read_text("utf-8")


def one(kind: str, name: str = "") -> Object:
    (found,) = (each for each in OBJECTS if each["kind"] == kind and name in ("", each["metadata"]["name"]))
    return found


def pod() -> Object:
    spec: Object = one("Deployment")["spec"]["template"]["spec"]
    return spec


def container() -> Object:
    (found,) = pod()["containers"]
    return dict(found)


def secret_keys() -> list[str]:
    return re.findall(rf"file:{SECRETS}/([a-z-]+)", one("ConfigMap")["data"]["kinference.yaml"])


@pytest.fixture
def config(tmp_path: Path) -> Config:
    for key in secret_keys():
        (tmp_path / key).write_text(f"secret-{key}")
    text: str = one("ConfigMap")["data"]["kinference.yaml"]
    return parse(text.replace(SECRETS, str(tmp_path)))


def seconds(command: list[str]) -> float:
    assert command[0] == "sleep"
    return float(command[1])


def test_the_configuration_is_taken_and_exposes_nothing(config: Config) -> None:
    args = parser().parse_args(container()["args"])
    refuse_exposure(config, insecure=args.insecure, planes=args.planes)
    assert [pool.discovery is not None for pool in config.pools] == [True]


def test_files_are_where_the_volumes_put_them() -> None:
    args = parser().parse_args(container()["args"])
    mounts = {mount["name"]: mount["mountPath"] for mount in container()["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod()["volumes"]}
    assert args.config == Path(mounts["config"], "kinference.yaml")
    assert volumes["config"]["configMap"]["name"] == one("ConfigMap")["metadata"]["name"]
    assert mounts["secrets"] == SECRETS
    assert mounts.keys() == volumes.keys()
    assert set(re.findall(r"--from-literal=([a-z-]+)=", HOW_TO)) == set(secret_keys())
    assert f"secret generic {volumes['secrets']['secret']['secretName']}" in HOW_TO


def test_ports_are_those_that_are_listened_on(config: Config) -> None:
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}
    assert ports == {"http": config.listen.gateway.port, "admin": config.listen.admin.port}
    probes = [container()[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert {(probe["path"], probe["port"]) for probe in probes} == {(path, "admin") for path in _OPEN}
    services = [each for each in OBJECTS if each["kind"] == "Service"]
    assert {port["targetPort"] for service in services for port in service["spec"]["ports"]} == ports.keys()


def test_there_is_time_to_drain_before_the_end(config: Config) -> None:
    before = seconds(container()["lifecycle"]["preStop"]["exec"]["command"])
    assert pod()["terminationGracePeriodSeconds"] >= before + config.limits.drain_timeout + 5


def test_whatever_selects_pods_selects_ours() -> None:
    labels = one("Deployment")["spec"]["template"]["metadata"]["labels"]
    services = [each["spec"]["selector"] for each in OBJECTS if each["kind"] == "Service"]
    others = [one(kind)["spec"]["selector"]["matchLabels"] for kind in ("Deployment", "PodDisruptionBudget")]
    assert [labels] * 4 == [*services, *others]
    assert not any("namespace" in each["metadata"] for each in OBJECTS)


def test_it_runs_as_nobody_and_writes_nothing() -> None:
    limits = container()["securityContext"]
    assert pod()["securityContext"]["runAsNonRoot"]
    assert limits["readOnlyRootFilesystem"]
    assert not limits["allowPrivilegeEscalation"]
    assert re.search(r"^USER ([1-9]\d*):\1$", CONTAINERFILE, re.MULTILINE)


async def asked_for(asked: Asked) -> set[tuple[str, str, str]]:
    """Group, resource and verb of each request that a source makes."""
    pool = [Reply([json.dumps(inference_pool({"a": "b"}, 80)).encode()])] * isinstance(asked, OfInferencePool)
    upstream = FakeApi([*pool, Reply([listed()]), Reply()])
    sets = KubernetesSource(api_of(upstream), asked, Random(1), Waits()).sets()
    for _ in range(2):
        await anext(sets)
    await sets.aclose()
    found: set[tuple[str, str, str]] = set()
    for request in upstream.asked:
        path, query = urlsplit(request.target).path.split("/"), parse_qs(urlsplit(request.target).query)
        group, rest = ("", path[3:]) if path[1] == "api" else (path[2], path[4:])
        verb = "get" if len(rest) > 3 else "watch" if "watch" in query else "list"
        found.add((group, rest[2], verb))
    return found


async def test_the_role_allows_what_discovery_asks_for_and_little_else() -> None:
    ways: list[Asked] = [Labelled("n", {"a": "b"}, (80,)), OfService("n", "s", (80,)), OfInferencePool("n", "p")]
    needed = set[tuple[str, str, str]]().union(*[await asked_for(way) for way in ways])
    allowed = {
        (group, resource, verb)
        for rule in one("Role")["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert needed <= allowed
    assert {(group, resource) for group, resource, _ in allowed} == {(group, resource) for group, resource, _ in needed}
    assert {verb for _, _, verb in allowed} <= {"get", "list", "watch"}
    binding = one("RoleBinding")
    assert binding["roleRef"]["name"] == one("Role")["metadata"]["name"]
    assert [each["name"] for each in binding["subjects"]] == [one("ServiceAccount")["metadata"]["name"]]
    assert pod()["serviceAccountName"] == one("ServiceAccount")["metadata"]["name"]


def test_the_container_starts_what_there_is() -> None:
    command = json.loads(re.findall(r"^CMD (\[.*\])$", CONTAINERFILE, re.MULTILINE)[-1])
    args = parser().parse_args(command)
    assert args.config == Path("/etc/kinference/kinference.yaml")
    listen = Config().listen
    (exposed,) = re.findall(r"^EXPOSE (.*)$", CONTAINERFILE, re.MULTILINE)
    assert exposed.split() == [str(each.port) for each in (listen.gateway, listen.picker, listen.admin)]
    (path,) = re.findall(r"http://127\.0\.0\.1:9090(/\w+)", CONTAINERFILE)
    assert path in _OPEN


def test_the_container_is_made_of_what_there_is() -> None:
    for copied in re.findall(r"^COPY (?!--from)(.*) \S+$", CONTAINERFILE, re.MULTILINE):
        assert all((ROOT / name).exists() for name in copied.split())
    assert "HATCH_BUILD_HOOK_ENABLE_CUSTOM=true pip wheel" in CONTAINERFILE
    assert set(re.findall(r"^FROM (\S+)", CONTAINERFILE, re.MULTILINE)) == {"python:3.11-slim"}


def test_the_versions_of_the_container_are_those_of_the_lock() -> None:
    (script,) = re.findall(r"sed -E '(.*)' requirements\.lock", CONTAINERFILE)
    lock = ROOT / "requirements.lock"
    lines = subprocess.run(["sed", "-E", script, lock], capture_output=True, check=True, text=True).stdout.split("\n")
    pinned = [line for line in lines if line]
    assert all(re.fullmatch(r"[\w.-]+==\S+( ; .*)?", line) for line in pinned)
    assert len(pinned) == len(re.findall(r"^[\w.-]+==", lock.read_text("utf-8"), re.MULTILINE))


def expressions() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


def test_the_dashboard_shows_metrics_that_there_are() -> None:
    kinds = {row.name: row for row in TABLE}
    page = Metrics().exposition().decode()
    for expression in expressions():
        grouped = {label for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(", ")}
        for name in re.findall(r"\b(?:kinference|process)_\w+", expression):
            row = kinds.get(name.removesuffix("_bucket"))
            if row is None:
                assert f"\n{name} " in page, f"{name} is no metric"
                continue
            assert (row.kind is Kind.HISTOGRAM) == name.endswith("_bucket"), name
            assert grouped - {"le", "instance"} <= set(row.labels), name
            assert ("rate(" in expression) == (row.kind is not Kind.GAUGE), name
            assert all(f"{{{{{label}}}}}" in legends(expression) for label in grouped - {"le"}), expression


def legends(expression: str) -> str:
    targets = [target for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    return " ".join(target["legendFormat"] for target in targets if target["expr"] == expression)


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        grid = panel["gridPos"]
        cells = {
            (x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])

from pathlib import Path
from random import Random

import pytest

from kinference.config.load import parse
from kinference.fleet.discovery.source import SourceFailed
from kinference.ids import ObjectRef
from kinference.runtime.cluster import OwnCluster
from kinference.runtime.discovery import Ways, ways
from kinference.wire.cluster import Cluster
from tests.unit.fleet.discovery.kubernetes.cluster_objects import listed
from tests.unit.fleet.discovery.kubernetes.fakes import FakeApi, Reply

OWN = OwnCluster(Cluster("https://10.0.0.1:443", None), Path("ca.crt"), "own")


def name_of(discovery: str, own: OwnCluster | None = OWN) -> str:
    made = Ways(FakeApi([]), own, FakeApi([]), Random(1))
    (wanted,) = made.wanted(parse(f"pools: [{{name: p, models: [m], discovery: {discovery}}}]"))
    assert (wanted.template.pool, wanted.template.models) == (ObjectRef("default", "p"), ("m",))
    return wanted.source().name


@pytest.mark.parametrize(
    ("discovery", "name"),
    [
        ("{dns: {name: engines, port: 80}}", "DNS engines, port 80"),
        ("{dns: {name: engines, server: '127.0.0.1:53'}}", "DNS engines, SRV"),
        ("{kubernetes: {service: s, target_ports: [80]}}", "Kubernetes Service own/s"),
        ("{kubernetes: {match_labels: {a: b}, namespace: ml, target_ports: [80]}}", "Kubernetes pods a=b in ml"),
        ("{kubernetes: {inference_pool: chat}}", "InferencePool own/chat"),
    ],
)
def test_each_way_has_its_source(discovery: str, name: str) -> None:
    assert name_of(discovery) == name


def test_listed_pools_are_not_discovered() -> None:
    made = Ways(FakeApi([]), None, FakeApi([]), Random(1))
    assert list(made.wanted(parse("pools: [{name: p, endpoints: ['http://h:1']}]"))) == []


@pytest.mark.parametrize("has_own", [False, True])
async def test_an_api_that_is_named_is_asked_in_place_of_our_own(has_own: bool) -> None:
    named, own = FakeApi([Reply([listed()])]), FakeApi([])
    made = Ways(named, OWN if has_own else None, own, Random(1))
    api = "api: 'http://127.0.0.1:8001'"
    (wanted,) = made.wanted(
        parse(f"pools: [{{name: p, discovery: {{kubernetes: {{service: s, {api}, target_ports: [80]}}}}}}]")
    )
    sets = wanted.source().sets()
    assert await anext(sets) == ()
    await sets.aclose()
    assert named.asked[0].origin == "http://127.0.0.1:8001"
    assert not own.asked


async def test_outside_of_a_cluster_it_says_what_to_do() -> None:
    async with ways(FakeApi([]), {}, Random(1)) as made:
        (wanted,) = made.wanted(parse("pools: [{name: p, discovery: {kubernetes: {service: s, target_ports: [80]}}}]"))
        with pytest.raises(SourceFailed, match="no pod with a service account of a cluster; run it in the cluster"):
            await anext(wanted.source().sets())

import json

import msgspec
import pytest

from kinference.fleet.discovery.kubernetes.objects import of_one_family, read_pod, read_pool, read_slice
from kinference.fleet.discovery.place import Place
from kinference.ids import Address
from tests.unit.fleet.discovery.kubernetes.cluster_objects import (
    Object,
    addresses,
    endpoint,
    endpoint_slice,
    inference_pool,
    pod,
)


def places_of(item: Object, *ports: int) -> tuple[Place, ...]:
    return read_pod(json.dumps(item).encode(), ports or (8000,)).places


def test_each_target_port_of_a_ready_pod_is_an_endpoint() -> None:
    known = read_pod(json.dumps(pod()).encode(), (8000, 8001))
    assert (known.name, known.version) == ("a", "5")
    assert known.places == (
        Place(Address("10.0.0.1:8000"), life="uid-a"),
        Place(Address("10.0.0.1:8001"), life="uid-a", rank=1),
    )


def test_an_address_of_the_new_family_stands_in_brackets() -> None:
    assert addresses(places_of(pod(ip="fd00::7"))) == ["[fd00::7]:8000"]


@pytest.mark.parametrize("item", [pod(ready=False), pod(ending=True), pod(ready=False, ending=True)])
def test_a_pod_that_is_not_ready_or_ends_takes_nothing_new(item: Object) -> None:
    assert [place.is_open for place in places_of(item)] == [False]


@pytest.mark.parametrize(
    "item", [pod(ip=""), pod(phase="Failed"), pod(phase="Succeeded"), pod(ip="no address"), {"metadata": {"name": "a"}}]
)
def test_a_pod_without_an_address_or_with_an_end_is_no_endpoint(item: Object) -> None:
    assert places_of(item) == ()


def test_what_is_null_counts_as_absent() -> None:
    item = pod()
    item["status"]["conditions"] = None
    assert [place.is_open for place in places_of(item)] == [False]


def test_a_slice_tells_who_is_ready_and_who_ends() -> None:
    found = endpoint_slice(
        endpoint("10.0.0.1", uid="a", ready=True, serving=True, terminating=False),
        endpoint("10.0.0.2", uid="b", ready=False, serving=True, terminating=True),
        endpoint("10.0.0.3", uid="c", ready=False, serving=False, terminating=False),
        endpoint("10.0.0.4", uid="d"),
        endpoint("10.0.0.5", uid="e", ready=None, terminating=None),
        endpoint("host.example", uid="f"),
    )
    known = read_slice(json.dumps(found).encode(), (80,))
    assert [(one.address, one.is_open, one.life) for one in known.places] == [
        ("10.0.0.1:80", True, "a"),
        ("10.0.0.2:80", False, "b"),
        ("10.0.0.3:80", False, "c"),
        ("10.0.0.4:80", True, "d"),
        ("10.0.0.5:80", True, "e"),
    ]


def test_a_slice_may_be_empty() -> None:
    found = endpoint_slice()
    found["endpoints"] = None
    assert read_slice(json.dumps(found).encode(), (80,)).places == ()


def test_an_inference_pool_brings_labels_and_ports() -> None:
    assert read_pool(json.dumps(inference_pool({"app": "vllm"}, 8000, 8001)).encode()) == (
        {"app": "vllm"},
        (8000, 8001),
    )


@pytest.mark.parametrize(
    "item",
    [
        inference_pool({}, 8000),
        inference_pool({"a": "b"}),
        inference_pool({"a": "b"}, 0),
        inference_pool({"a": "b"}, *range(1, 10)),
        {"spec": {}},
        {},
    ],
)
def test_an_inference_pool_without_labels_or_ports_makes_no_sense(item: Object) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_pool(json.dumps(item).encode())


def test_a_pod_with_an_address_of_each_family_is_one_engine() -> None:
    four, six = Place(Address("10.0.0.1:80"), life="a"), Place(Address("[fd00::1]:80"), life="a")
    other_port, other_pod = Place(Address("[fd00::1]:81"), life="a"), Place(Address("[fd00::2]:80"), life="b")
    nameless = Place(Address("[fd00::3]:80"))
    assert of_one_family([six, four, other_port, other_pod, nameless]) == (four, other_port, other_pod, nameless)

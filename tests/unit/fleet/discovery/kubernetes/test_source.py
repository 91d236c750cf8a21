import json
from collections.abc import AsyncGenerator, Sequence
from random import Random

import pytest

from kinference.errors import KinferenceError, UpstreamCut
from kinference.fleet.discovery.kubernetes.source import (
    PAGES_MAX,
    Asked,
    KubernetesSource,
    Labelled,
    OfInferencePool,
    OfService,
)
from kinference.fleet.discovery.place import Place
from kinference.fleet.discovery.source import SourceFailed
from tests.unit.fleet.discovery.fakes import Waits
from tests.unit.fleet.discovery.kubernetes.cluster_objects import (
    addresses,
    bookmark,
    endpoint,
    endpoint_slice,
    event,
    failure,
    inference_pool,
    listed,
    pod,
)
from tests.unit.fleet.discovery.kubernetes.fakes import FakeApi, Reply, api_of

PODS = Labelled("models", {"app": "vllm", "role": "chat"}, (80,))
ONE, TWO = pod("a"), pod("b", "10.0.0.2", version="10")


def source(upstream: FakeApi, asked: Asked = PODS) -> KubernetesSource:
    return KubernetesSource(api_of(upstream), asked, Random(1), Waits())


async def told(sets: AsyncGenerator[Sequence[Place], None], times: int) -> list[list[str]]:
    found = [addresses(await anext(sets)) for _ in range(times)]
    await sets.aclose()
    return found


async def test_what_there_is_is_listed_and_what_happens_is_watched_from_there() -> None:
    upstream = FakeApi([Reply([listed(ONE)]), Reply([event("ADDED", TWO)])])
    assert await told(source(upstream).sets(), 3) == [["10.0.0.1:80"]] * 2 + [["10.0.0.1:80", "10.0.0.2:80"]]
    assert upstream.paths == ["/api/v1/namespaces/models/pods"] * 2
    assert upstream.query(0) == {"labelSelector": "app=vllm,role=chat", "limit": "250"}
    assert upstream.query(1) == {
        "labelSelector": "app=vllm,role=chat",
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": "9",
        "timeoutSeconds": "60",
    }


async def test_a_long_list_comes_in_pages() -> None:
    upstream = FakeApi([Reply([listed(ONE, more="next/page=")]), Reply([listed(TWO)])])
    assert await told(source(upstream).sets(), 1) == [["10.0.0.1:80", "10.0.0.2:80"]]
    assert upstream.query(1)["continue"] == "next/page="


async def test_a_watch_that_ends_is_begun_again_from_the_last_bookmark() -> None:
    upstream = FakeApi([Reply([listed(ONE)]), Reply([bookmark("77")]), Reply()])
    await told(source(upstream).sets(), 4)
    assert upstream.query(2)["resourceVersion"] == "77"


async def test_a_watch_that_breaks_off_goes_on_where_it_ended() -> None:
    upstream = FakeApi([Reply([listed(ONE)]), Reply([event("ADDED", TWO), UpstreamCut("cut")]), Reply()])
    asked = source(upstream)
    sets = asked.sets()
    for _ in range(3):
        await anext(sets)
    with pytest.raises(SourceFailed, match="cut"):
        await anext(sets)
    assert await told(asked.sets(), 1) == [["10.0.0.1:80", "10.0.0.2:80"]]
    assert upstream.query(2)["resourceVersion"] == "10"


@pytest.mark.parametrize("gone", [Reply(status=410), Reply([event("ADDED", TWO), failure(410)])])
async def test_a_version_that_is_too_old_has_everything_listed_anew(gone: Reply) -> None:
    upstream = FakeApi([Reply([listed(ONE)]), gone, Reply([listed(TWO, version="20")]), Reply()])
    sets = source(upstream).sets()
    while True:
        if addresses(await anext(sets)) == ["10.0.0.2:80"] and len(upstream.asked) > 2:
            break
    await anext(sets)
    await sets.aclose()
    assert upstream.query(3)["resourceVersion"] == "20"


async def test_an_api_that_cannot_go_on_from_its_own_list_is_left_alone_for_a_while() -> None:
    upstream = FakeApi([Reply([listed(ONE)]), Reply(status=410)] * 2)
    sets = source(upstream).sets()
    with pytest.raises(SourceFailed, match="cannot go on from its own list"):
        await told(sets, 3)


async def test_a_service_is_known_by_its_slices() -> None:
    found = endpoint_slice(endpoint("10.0.0.1"), endpoint("10.0.0.2", terminating=True))
    upstream = FakeApi([Reply([listed(found)])])
    sets = source(upstream, OfService("models", "engines", (80,))).sets()
    assert [(place.address, place.is_open) for place in await anext(sets)] == [
        ("10.0.0.1:80", True),
        ("10.0.0.2:80", False),
    ]
    await sets.aclose()
    assert upstream.paths == ["/apis/discovery.k8s.io/v1/namespaces/models/endpointslices"]
    assert upstream.query(0)["labelSelector"] == "kubernetes.io/service-name=engines"


def pool_reply(label: str, *ports: int) -> Reply:
    return Reply([json.dumps(inference_pool({"app": label}, *ports)).encode()])


async def test_an_inference_pool_says_which_pods_and_ports_and_may_say_otherwise_later() -> None:
    upstream = FakeApi(
        [pool_reply("v1", 8000, 8001), Reply([listed(ONE)]), Reply(), pool_reply("v2", 90), Reply([listed(TWO)])]
    )
    asked = source(upstream, OfInferencePool("models", "chat"))
    assert await told(asked.sets(), 3) == [["10.0.0.1:8000", "10.0.0.1:8001"]] * 2 + [["10.0.0.2:90"]]
    assert upstream.paths[0] == "/apis/inference.networking.k8s.io/v1/namespaces/models/inferencepools/chat"
    assert (upstream.query(1)["labelSelector"], upstream.query(4)["labelSelector"]) == ("app=v1", "app=v2")


@pytest.mark.parametrize(
    ("replies", "why"),
    [
        ([Reply([b"no list"])], "the answer is no list"),
        ([Reply([listed(version="")])], "the list has no version"),
        ([Reply(status=410)], "expired while it was read"),
        ([Reply([listed(more="again")]) for _ in range(PAGES_MAX)], "the list has no end"),
    ],
)
async def test_a_list_that_is_none_has_failed(replies: list[Reply | KinferenceError], why: str) -> None:
    with pytest.raises(SourceFailed, match=why):
        await anext(source(FakeApi(replies)).sets())


async def test_an_inference_pool_that_is_none_has_failed() -> None:
    with pytest.raises(SourceFailed, match="InferencePool models/chat makes no sense"):
        await anext(source(FakeApi([Reply([b"{}"])]), OfInferencePool("models", "chat")).sets())


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (PODS, "Kubernetes pods app=vllm,role=chat in models"),
        (OfService("models", "engines", (80,)), "Kubernetes Service models/engines"),
        (OfInferencePool("models", "chat"), "InferencePool models/chat"),
    ],
)
def test_its_name_tells_what_is_watched(asked: Asked, name: str) -> None:
    assert source(FakeApi([]), asked).name == name

"""The snapshot for people."""

from dataclasses import fields
from pathlib import Path
from random import Random

from kinference.core.fleet import BackendSpec, EndpointSpec, Fleet, Observation
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules
from kinference.core.prefix.hashing import BLOCK_BYTES
from kinference.core.request import Request
from kinference.core.snapshot import DestinationSnapshot, RatesSnapshot
from kinference.ids import Address, ObjectRef
from kinference.vocabulary import Api

POOL = ObjectRef("default", "pool")
ONE = Address("h1:1")
ADMIN_PAGE = Path(__file__).parents[3] / "docs/reference/admin.md"


def test_it_shows_what_the_router_knows_of_each_destination() -> None:
    fleet = Fleet()
    fleet.set_pool(POOL, [EndpointSpec(POOL, ONE, models=("m",))])
    fleet.set_backends([BackendSpec(ObjectRef("default", "cloud"), Api.OPENAI_CHAT, {"x": "y"})])
    fleet.set_ready(POOL, ONE, ready=True)
    fleet.observe(POOL, ONE, Observation(2.0, 3, 4, 0.5))
    router = Router(fleet, RoutingRules(), Random(1))
    router.decide(Request("m", Api.OPENAI_CHAT, (b"x" * 4_000,), 4_000), 2.0)
    endpoint, backend = router.snapshot(5.0)
    assert (endpoint.kind, endpoint.pool, endpoint.address, endpoint.models) == ("pool", "default/pool", ONE, ("m",))
    assert (endpoint.ready, endpoint.draining, endpoint.circuit) == (True, False, "closed")
    assert (endpoint.waiting, endpoint.running, endpoint.kv_usage_ratio, endpoint.seen_s_ago) == (3, 4, 0.5, 3.0)
    assert (endpoint.requests, endpoint.prefill_tokens, endpoint.picks) == (1, 1_000, 1)
    assert endpoint.prefix_blocks == 4_000 // BLOCK_BYTES
    assert endpoint.rates[0].model == "m"
    assert (backend.kind, backend.pool, backend.address, backend.models) == ("backend", "default/cloud", "", ("x",))
    assert (backend.waiting, backend.prefix_blocks_max, backend.requests) == (None, 0, 0)


def test_every_field_is_explained_in_the_reference() -> None:
    page = ADMIN_PAGE.read_text(encoding="utf-8")
    shown = {each.name for each in fields(DestinationSnapshot) + fields(RatesSnapshot)} - {"model"}
    assert [name for name in sorted(shown) if f"`{name}`" not in page] == []

from random import Random

import msgspec

from kinference.core.admission import Admission
from kinference.core.fleet import BackendSpec, EndpointSpec, Fleet
from kinference.core.limits import Limits
from kinference.core.pick import Router
from kinference.core.policy import RoutingRules, TenantRule
from kinference.core.request import Request
from kinference.core.waiting import AdmissionRules
from kinference.ids import Address, ObjectRef, StreamId
from kinference.observe.metrics import Metrics
from kinference.picker.desk import Desk
from kinference.picker.limits import PickerLimits
from kinference.ports import PickArguments
from kinference.runtime.clock import SystemClock
from kinference.runtime.views import decision_views, tenant_views, unready_reason, waiting_views
from kinference.vocabulary import Api

POOL = ObjectRef("default", "chat")
ADDRESS = Address("127.0.0.1:8000")
BODY = b'{"model":"demo","messages":[{"role":"user","content":"a secret question"}]}'


def fleet(*, ready: bool, models: tuple[str, ...] = ("demo",)) -> Fleet:
    made = Fleet()
    made.set_pool(POOL, [EndpointSpec(POOL, ADDRESS)])
    made.set_models(POOL, ADDRESS, models)
    made.set_ready(POOL, ADDRESS, ready)
    return made


def pushed(desk: Desk) -> StreamId:
    stream_id = desk.open(len(BODY))
    desk.append(stream_id, BODY)
    desk.finish(stream_id)
    desk.commit(stream_id)
    return stream_id


def test_endpoints_are_shown_with_their_state_and_load() -> None:
    router = Router(fleet(ready=True), RoutingRules(), Random(1))
    (shown,) = msgspec.json.decode(msgspec.json.encode(router.snapshot(0.0)))
    assert (shown["address"], shown["ready"], shown["requests"], shown["models"]) == (ADDRESS, True, 0, ["demo"])


def test_a_decision_is_shown_with_what_was_weighed_and_without_the_body() -> None:
    router = Router(fleet(ready=True), RoutingRules(), Random(1))
    desk = Desk(router, PickerLimits(), SystemClock(), Metrics(), Random(1))
    desk.pick(PickArguments(pushed(desk), tenant="acme", client_request_id="r-1"), lambda: None)
    encoded = msgspec.json.encode(decision_views(desk, router, 10))
    (shown,) = msgspec.json.decode(encoded)
    assert (shown["outcome"], shown["tenant"], shown["client_request_id"]) == ("ok", "acme", "r-1")
    (candidate,) = shown["explanation"]["candidates"]
    assert candidate["destination"] == shown["explanation"]["pick"]
    assert candidate["terms"]
    assert shown["picked_at"].endswith("+00:00")
    assert b"secret question" not in encoded


def test_no_more_decisions_than_asked() -> None:
    router = Router(fleet(ready=True), RoutingRules(), Random(1))
    desk = Desk(router, PickerLimits(), SystemClock(), Metrics(), Random(1))
    for number in range(3):
        desk.pick(PickArguments(pushed(desk), tenant="", client_request_id=str(number)), lambda: None)
    shown = decision_views(desk, router, 2)
    assert [view["client_request_id"] for view in shown] == ["2", "1"]


def test_readiness_says_what_is_missing() -> None:
    assert unready_reason(fleet(ready=True), draining=False) is None
    assert "no endpoint answers its health check: 127.0.0.1:8000" in str(
        unready_reason(fleet(ready=False), draining=False)
    )
    assert "no models known at 127.0.0.1:8000" in str(unready_reason(fleet(ready=True, models=()), draining=False))
    assert "shutting down" in str(unready_reason(fleet(ready=True), draining=True))
    assert "no pool has an endpoint" in str(unready_reason(Fleet(), draining=False))
    assert unready_reason(Fleet(), "DNS failed", draining=False) == "no endpoint is discovered: DNS failed"
    drained = fleet(ready=True)
    drained.set_draining(POOL, ADDRESS, draining=True)
    assert "every endpoint drains: 127.0.0.1:8000; " in str(unready_reason(drained, draining=False))


def test_a_backend_alone_is_enough() -> None:
    made = Fleet()
    made.set_backends([BackendSpec(ObjectRef("default", "openai"), Api.OPENAI_CHAT, {"gpt": "gpt-5"})])
    assert unready_reason(made, draining=False) is None


def test_tenants_are_shown_with_what_they_may_use_and_what_they_have() -> None:
    rules = RoutingRules(tenants=(TenantRule(("acme",), limits=Limits(10, None, 3, 5.0)),))
    router = Router(fleet(ready=True), rules, Random(1))
    assert tenant_views(router, 0.0, None, 9) == []
    router.decide(Request("demo", Api.OPENAI_CHAT, (), 400, tenant="acme"), 0.0)
    (shown,) = msgspec.json.decode(msgspec.json.encode(tenant_views(router, 0.0, None, 9)))
    assert (shown["tenant"], shown["in_flight"], shown["requests_left"], shown["tokens_left"]) == ("acme", 1, 9, None)
    assert shown["limits"]["usd_per_month"] == 5.0
    assert (shown["spent_usd"], shown["expected_usd"]) == (0.0, 0.0)


def test_people_see_who_waits_for_an_engine() -> None:
    fleet = Fleet()
    fleet.set_pool(POOL, [EndpointSpec(POOL, Address("10.0.0.1:8000"), models=("llama",))])
    fleet.set_ready(POOL, Address("10.0.0.1:8000"), ready=True)
    admission = Admission(Router(fleet, RoutingRules(), Random(1)), AdmissionRules(start_within_ms=1.0))
    for number in range(2):
        prompt = bytes([number]) * 4_000
        admission.admit(Request("llama", Api.OPENAI_CHAT, (prompt,), 4_000, tenant="acme"), 0.0)
    (view,) = waiting_views(admission, 1.5)
    assert (view["destinations"], view["requests"]) == ((str(POOL),), {"interactive": 1})
    assert (view["tenants"], view["longest_s"]) == (1, 1.5)
    assert view["bound_ms"] == {f"{POOL}/10.0.0.1:8000": view["work_ms"]}
    assert str(view["why"]).startswith("each of 1 destinations has prompts to compute, the least of them ")
    (group,) = msgspec.json.decode(msgspec.json.encode(view))["groups"]
    assert group == {
        "qos": "interactive",
        "tenant": "acme",
        "requests": 1,
        "work_ms": view["work_ms"],
        "longest_s": 1.5,
    }

"""Pick: which body, which outcome, and what the answer holds."""

import asyncio
import json

from grpc import StatusCode

from kinference.conformance import message
from kinference.conformance.case import Probe, case, chat
from kinference.conformance.claims import expect, expect_equal, expect_scattered
from kinference.conformance.client import Outcome, Picked, status_of
from kinference.conformance.message import Fields, encode
from kinference.conformance.target import EMPTY_TENANT, MODEL, POOL, PROVIDER_MODEL, REJECTED_TENANT, SHORT_TTL

UNHEARD_OF = "conformance-unheard-of"
NO_REQUESTS = (b"no json", b"[]", b"7", b'"text"', b"{}", b'{"model":', b'{"model":"m"}', b'{"model":7,"messages":[1]}')
DEEP = b'{"model":"m","messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
SECRET = "the-text-of-the-body"  # noqa: S105 - a marker to look for in answers
REASON_MAX = 512
LOCAL = 2
AT_ONCE = 20


@case("K1")
async def the_id_0_is_invalid(probe: Probe) -> None:
    expect_equal(await status_of(probe.client.pick(0)), StatusCode.INVALID_ARGUMENT, "the status")


@case("K2")
async def an_id_that_names_no_body_is_not_found(probe: Probe) -> None:
    for stream_id in (1, 12345, 2**64 - 1):
        expect_equal(await status_of(probe.client.pick(stream_id)), StatusCode.NOT_FOUND, f"the status of {stream_id}")


@case("K3")
async def a_second_pick_fails_its_precondition(probe: Probe) -> None:
    for body in (probe.chat(), chat(UNHEARD_OF, "hello"), b"no json"):
        stream_id, _ = await probe.client.push(body)
        await probe.client.pick(stream_id)
        for _ in range(2):
            status = await status_of(probe.client.pick(stream_id))
            expect_equal(status, StatusCode.FAILED_PRECONDITION, "the status of a second Pick")


@case("K3", needs=(MODEL,))
async def a_second_pick_fails_its_precondition_when_the_request_is_over(probe: Probe) -> None:
    stream_id, _ = await probe.client.push(probe.chat())
    picked = await probe.client.pick(stream_id)
    await probe.client.pull(picked.response_id)
    await probe.client.final_token(picked.response_id)
    status = await status_of(probe.client.pick(stream_id))
    expect_equal(status, StatusCode.FAILED_PRECONDITION, "the status of a second Pick")


@case("K4")
async def of_many_picks_at_once_exactly_one_is_answered(probe: Probe) -> None:
    stream_id, _ = await probe.client.push(probe.chat())
    statuses = await asyncio.gather(*(status_of(probe.client.pick(stream_id)) for _ in range(AT_ONCE)))
    expect_equal(statuses.count(StatusCode.OK), 1, "Picks that were answered")
    expect_equal(statuses.count(StatusCode.FAILED_PRECONDITION), AT_ONCE - 1, "Picks that failed their precondition")


@case("K5", needs=(MODEL,))
async def a_choice_names_its_destination_and_an_id(probe: Probe) -> None:
    picked = await probe.choice()
    expect(picked.has_destination, "a choice without a destination")
    expect(picked.response_id, "a choice with the response_id 0")
    endpoint = message.text(message.decode(message.octets(picked.fields, LOCAL)), 1) if LOCAL in picked.fields else "-"
    expect(endpoint, "a local destination without an endpoint")


@case("I1", needs=(MODEL,))
async def response_ids_are_not_to_be_guessed(probe: Probe) -> None:
    expect_scattered([(await probe.choice()).response_id for _ in range(20)])


@case("K6", needs=(MODEL,))
async def the_total_is_that_of_the_body_handed_back(probe: Probe) -> None:
    for length in (1, 4097, 65_535, 70_000, 200_000):
        body = probe.chat("hello", padding=length)
        picked = await probe.choice(body)
        pulled = b"".join(await probe.client.pull(picked.response_id))
        expect_equal(len(pulled), picked.body_total_bytes, "bytes pulled, against body_total_bytes")
        expect_equal(_content(pulled), "hello", "the content of the message")


@case("K7")
async def a_refusal_holds_nothing_and_says_why(probe: Probe) -> None:
    for body in (chat(UNHEARD_OF, "hello"), b"no json"):
        _expect_refusal(await probe.client.push_and_pick(body))


@case("K8")
async def what_is_no_inference_request_is_a_bad_request(probe: Probe) -> None:
    for body in (*NO_REQUESTS, DEEP, b'{"model":"\xff","messages":[{"role":"user","content":"x"}]}'):
        picked = await probe.client.push_and_pick(body)
        expect_equal(picked.outcome, Outcome.BAD_REQUEST, f"the outcome of {body[:40]!r}")
        _expect_refusal(picked)


@case("K9")
async def an_unknown_model_has_no_workers(probe: Probe) -> None:
    picked = await probe.client.push_and_pick(chat(UNHEARD_OF, "hello"))
    expect_equal(picked.outcome, Outcome.NO_WORKERS, "the outcome")


@case("K10")
async def the_model_is_told_whatever_the_outcome(probe: Probe) -> None:
    for body in (chat(UNHEARD_OF, "hello"), json.dumps({"model": UNHEARD_OF}).encode()):
        picked = await probe.client.push_and_pick(body)
        expect_equal(picked.requested_model, UNHEARD_OF, "requested_model")
    if probe.target.names.model:
        picked = await probe.client.push_and_pick(probe.chat())
        expect_equal(picked.requested_model, probe.target.names.model, "requested_model")


@case("K11")
async def a_reason_tells_nothing_of_the_text(probe: Probe) -> None:
    bodies = (chat(UNHEARD_OF, SECRET), f'{{"model":"m","messages":"{SECRET}'.encode(), SECRET.encode())
    for body in bodies:
        picked = await probe.client.push_and_pick(body)
        expect(SECRET not in picked.reason, f"the reason repeats the body: {picked.reason}")


@case("K12", needs=(MODEL,))
async def a_pool_without_a_name_is_no_pool(probe: Probe) -> None:
    for pool in (b"", encode({1: b"default"}), encode({1: b"default", 3: b"17"})):
        picked = await probe.client.push_and_pick(probe.chat(), {3: pool})
        expect(picked.is_choice, f"an InferencePoolRef without a name counts as one: {picked.reason}")


@case("K13", needs=(MODEL,))
async def a_pool_that_is_not_served_has_no_workers(probe: Probe) -> None:
    pool = encode({1: b"default", 2: UNHEARD_OF.encode()})
    picked = await probe.client.push_and_pick(probe.chat(), {3: pool})
    expect_equal(picked.outcome, Outcome.NO_WORKERS, "the outcome")
    expect(UNHEARD_OF in picked.reason, f"the reason does not name the pool: {picked.reason}")


@case("K14", needs=(MODEL, POOL))
async def a_pool_that_is_served_is_picked_from(probe: Probe) -> None:
    namespace, _, name = probe.target.names.pool.partition("/")
    for version in (b"", b"17", b"no number"):
        pool = encode({1: namespace.encode(), 2: name.encode(), 3: version})
        picked = await probe.client.push_and_pick(probe.chat(), {3: pool})
        expect(picked.is_choice, f"no destination in the pool: {picked.reason}")


@case("K15", needs=(MODEL,))
async def an_unknown_class_is_tolerated(probe: Probe) -> None:
    for qos_class in (0, 1, 2, 3, 77, 2**31 - 1, 2**64 - 1):
        picked = await probe.client.push_and_pick(probe.chat(), {4: qos_class})
        expect(picked.is_choice, f"qos_class {qos_class} was refused: {picked.reason}")


@case("K16", needs=(MODEL,))
async def unknown_fields_are_tolerated(probe: Probe) -> None:
    picked = await probe.client.push_and_pick(probe.chat(), {99: b"later", 100: 5, 2: b"request-1"})
    expect(picked.is_choice, f"unknown fields were refused: {picked.reason}")


@case("K17")
async def what_is_no_pick_request_is_invalid(probe: Probe) -> None:
    for request in (b"\xff", b"\x2a\x05ab", b"\x1a\x02\x0a\x05", b"\x2a\x02\xff\xfe"):
        status = await status_of(probe.client.unary("Pick", request))
        expect_equal(status, StatusCode.INVALID_ARGUMENT, f"the status of {request.hex()}")


@case("K18", needs=(SHORT_TTL,))
async def a_body_that_nobody_picked_in_time_is_not_found(probe: Probe) -> None:
    stream_id, _ = await probe.client.push(probe.chat())
    await asyncio.sleep(probe.target.limits.body_ttl + 0.5)
    expect_equal(await status_of(probe.client.pick(stream_id)), StatusCode.NOT_FOUND, "the status after the TTL")


@case("K18", needs=(SHORT_TTL, MODEL))
async def a_body_waits_for_its_pick_until_its_time_is_over(probe: Probe) -> None:
    stream_id, _ = await probe.client.push(probe.chat())
    await asyncio.sleep(probe.target.limits.body_ttl / 2)
    expect_equal(await status_of(probe.client.pick(stream_id)), StatusCode.OK, "the status at half of the TTL")


@case("T1", needs=(MODEL, REJECTED_TENANT))
async def a_tenant_that_may_not_is_rejected_by_policy(probe: Probe) -> None:
    picked = await probe.client.push_and_pick(probe.chat(), {5: probe.target.names.rejected_tenant.encode()})
    expect_equal(picked.outcome, Outcome.POLICY_REJECTED, "the outcome")
    _expect_refusal(picked)
    known = picked.reason.startswith(("policy:", "quota:", "saturated:"))
    expect(known, f"the reason does not begin with its kind: {picked.reason}")


@case("T2", needs=(MODEL, EMPTY_TENANT))
async def the_empty_tenant_is_the_value_empty(probe: Probe) -> None:
    requests: tuple[Fields, ...] = ({5: b""}, {5: b"", 2: b"request-1"})
    for fields in requests:
        picked = await probe.client.push_and_pick(probe.chat(), fields)
        if probe.target.names.empty_tenant:
            expect(picked.is_choice, f'the tenant "" was refused: {picked.reason}')
        else:
            expect_equal(picked.outcome, Outcome.POLICY_REJECTED, 'the outcome for the tenant ""')
    expect((await probe.choice()).response_id, "a named tenant was refused")


@case("V1", needs=(PROVIDER_MODEL,))
async def a_provider_is_named_by_its_backend(probe: Probe) -> None:
    picked = await probe.choice(chat(probe.target.names.provider_model, "hello"))
    provider = message.decode(message.octets(picked.fields, 7))
    backend = message.decode(message.octets(provider, 1))
    expect(message.text(backend, 2), "a provider without the name of its backend")
    path = message.text(provider, 2)
    expect(path == "" or path.startswith("/"), f"the path does not begin with a slash: {path}")
    expect_equal(picked.requested_model, probe.target.names.provider_model, "requested_model")
    pulled = b"".join(await probe.client.pull(picked.response_id))
    expect_equal(len(pulled), picked.body_total_bytes, "bytes pulled, against body_total_bytes")
    expect_equal(_content(pulled), "hello", "the content of the message")


@case("V2", needs=(PROVIDER_MODEL,))
async def a_backend_that_callers_cannot_use_is_not_picked_again(probe: Probe) -> None:
    body = chat(probe.target.names.provider_model, "hello")
    first = await probe.choice(body)
    expect(await probe.client.abort(first.response_id, 3), "the abort released nothing")
    again = await probe.client.push_and_pick(body)
    expect(again.fields.get(7) != first.fields[7], "the backend that was reported was picked again at once")


def _expect_refusal(picked: Picked) -> None:
    expect(not picked.is_choice, f"the outcome is {picked.outcome}, not a refusal")
    expect(not picked.has_destination, "a refusal with a destination")
    expect_equal(picked.response_id, 0, "the response_id of a refusal")
    expect_equal(picked.body_total_bytes, 0, "the body_total_bytes of a refusal")
    expect(0 < len(picked.reason) <= REASON_MAX, f"a reason of {len(picked.reason)} characters")


def _content(body: bytes) -> object:
    try:
        return json.loads(body)["messages"][0]["content"]
    except (ValueError, LookupError, TypeError) as error:
        return f"not a chat request: {error!r}"

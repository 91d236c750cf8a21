"""Pick, clause by clause."""

import asyncio

import pytest
from grpc import StatusCode

from tests.conformance.picker.client import (
    BAD_REQUEST,
    CHAT,
    NO_WORKERS,
    OK,
    POLICY_REJECTED,
    Client,
    Server,
    encode,
    status_of,
)


async def test_ids_that_name_no_body(client: Client) -> None:
    assert await status_of(client.pick(0)) is StatusCode.INVALID_ARGUMENT
    assert await status_of(client.pick(12345)) is StatusCode.NOT_FOUND
    assert await status_of(client.unary("Pick", b"\xff")) is StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("body", [CHAT, b"no json"])
async def test_a_second_pick_fails_its_precondition(client: Client, body: bytes) -> None:
    stream_id, _ = await client.push(body)
    await client.pick(stream_id)
    assert await status_of(client.pick(stream_id)) is StatusCode.FAILED_PRECONDITION


async def test_of_many_picks_at_once_exactly_one_is_answered(client: Client) -> None:
    stream_id, _ = await client.push(CHAT)
    codes = await asyncio.gather(*(status_of(client.pick(stream_id)) for _ in range(20)))
    assert sorted(codes, key=lambda code: code.name) == [StatusCode.FAILED_PRECONDITION] * 19 + [StatusCode.OK]


@pytest.mark.parametrize(
    ("body", "outcome", "model"),
    [
        (b"[]", BAD_REQUEST, ""),
        (b'{"model":"llama"}', BAD_REQUEST, "llama"),
        (b'{"model":7,"messages":[1]}', BAD_REQUEST, ""),
        (b'{"model":"nobody","messages":[{"role":"user","content":"x"}]}', NO_WORKERS, "nobody"),
        (b'{"model":"sleeper","messages":[{"role":"user","content":"x"}]}', NO_WORKERS, "sleeper"),
    ],
)
async def test_a_refusal_says_why_and_holds_nothing(
    client: Client, server: Server, body: bytes, outcome: int, model: str
) -> None:
    picked = await client.pushed_and_picked(body)
    assert (picked.outcome, picked.model) == (outcome, model)
    assert 0 < len(picked.reason) <= 512
    assert not {2, 3, 5, 7} & set(picked.fields)
    assert server.buffered_bytes() == 0


async def test_a_provider_is_answered_with_the_body_rewritten_for_it(client: Client) -> None:
    body = b'{"temperature":1.0, "model":"gpt","messages":[{"role":"user","content":"gpt"}]}'
    picked = await client.pushed_and_picked(body)
    assert picked.fields[7] == encode({1: encode({1: b"default", 2: b"cloud"}), 2: b"/v1/chat"})
    pulled = b"".join(await client.pull(picked.response_id))
    assert pulled == body.replace(b'"model":"gpt"', b'"model":"gpt-long-provider-name"')
    assert (len(pulled), picked.model) == (picked.total, "gpt")


@pytest.mark.parametrize(
    ("pool", "outcome"),
    [
        (encode({1: b"default", 2: b"gpu", 3: b"resource version"}), OK),
        (encode({1: b"default"}), OK),
        (b"", OK),
        (encode({1: b"default", 2: b"unheard-of"}), NO_WORKERS),
        (encode({1: b"default", 2: b"asleep"}), NO_WORKERS),
    ],
)
async def test_a_named_pool_binds_and_an_unnamed_one_does_not(client: Client, pool: bytes, outcome: int) -> None:
    picked = await client.pushed_and_picked(CHAT, {3: pool})
    assert picked.outcome == outcome
    assert outcome == OK or pool[-3:].decode() in picked.reason


async def test_an_unknown_class_and_unknown_fields_are_tolerated(client: Client) -> None:
    assert (await client.pushed_and_picked(CHAT, {4: 7, 99: b"later"})).outcome == OK


@pytest.mark.parametrize("server", [{"rules": "strict"}], indirect=True)
async def test_an_empty_tenant_is_not_any_tenant(client: Client) -> None:
    assert (await client.pushed_and_picked(CHAT, {5: b"anyone"})).outcome == OK
    for tenant in (b"", b"barred"):
        picked = await client.pushed_and_picked(CHAT, {5: tenant})
        assert (picked.outcome, picked.model) == (POLICY_REJECTED, "llama")
        assert picked.reason.startswith("policy:")


@pytest.mark.parametrize("server", [{"rules": "empty named"}], indirect=True)
async def test_an_empty_tenant_matches_the_rule_that_names_it(client: Client) -> None:
    assert (await client.pushed_and_picked(CHAT, {5: b""})).outcome == OK
    assert (await client.pushed_and_picked(CHAT, {5: b"acme"})).outcome == POLICY_REJECTED


@pytest.mark.parametrize(("path", "outcome"), [("/v1/messages", NO_WORKERS), ("/v1/chat/completions", OK)])
async def test_the_clients_path_settles_the_api(client: Client, path: str, outcome: int) -> None:
    body = b'{"model":"gpt","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}'
    stream_id, _ = await client.push(body)
    assert (await client.pick(stream_id, metadata=[("kinference-request-path", path)])).outcome == outcome
    stream_id, _ = await client.push(body)
    translates = [("kinference-request-path", path), ("kinference-translates", "1")]
    assert (await client.pick(stream_id, metadata=translates)).outcome == OK

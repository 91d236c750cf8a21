import json
from dataclasses import replace

import pytest

from kinference.ports import Headers, UpstreamRequest
from kinference.sandbox.outbound import DAY, outbound, pinned
from kinference.sandbox.routes import SandboxRoute
from tests.unit.sandbox.asked import Asked

CHAT = "/v1/chat/completions"
OPENAI = SandboxRoute("inference.local", "https://up.test/v1", ("openai_chat_completions",), "sk-1", "real", "openai")
ANTHROPIC = replace(OPENAI, provider_type="anthropic")
VERTEX = replace(
    OPENAI,
    base_url="https://v/models",
    provider_type="google-vertex-ai",
    model_in_path=True,
    path_override=":rawPredict",
)
BEDROCK = replace(OPENAI, base_url="https://bridge", provider_type="aws-bedrock", api_key="")


def sent(route: SandboxRoute, headers: Headers = (), body: bytes = b"{}", path: str = CHAT) -> UpstreamRequest:
    return outbound(Asked("POST", path, headers=headers), body, route, is_buffered=False)


def test_fact42_our_key_goes_out_and_the_programs_does_not() -> None:
    received = (
        *(
            (b"authorization", b"Bearer theirs"),
            (b"x-api-key", b"theirs"),
            (b"cookie", b"c"),
            (b"host", b"inference.local"),
        ),
        *((b"openai-organization", b"org"), (b"content-type", b"application/json"), (b"x-forwarded-for", b"10.0.0.1")),
    )
    assert sent(OPENAI, received).headers == (
        (b"openai-organization", b"org"),
        (b"content-type", b"application/json"),
        (b"authorization", b"Bearer sk-1"),
    )


@pytest.mark.parametrize(
    ("received", "version"), [((), b"2023-06-01"), (((b"anthropic-version", b"2026-01-01"),), b"2026-01-01")]
)
def test_fact43_anthropic_has_its_own_field_and_one_version(received: Headers, version: bytes) -> None:
    fields = sent(ANTHROPIC, (*received, (b"anthropic-beta", b"x"), (b"openai-organization", b"org"))).headers
    assert (b"x-api-key", b"sk-1") in fields
    assert (b"anthropic-beta", b"x") in fields
    assert [value for name, value in fields if name == b"anthropic-version"] == [version]
    assert not {b"authorization", b"openai-organization"} & {name for name, _ in fields}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"model": "asked", "n": 1.50}', b'{"model": "real", "n": 1.50}'),
        (b'{ "n": 1}', b'{"model":"real", "n": 1}'),
        (b"{}", b'{"model":"real"}'),
        (b"[1]", b"[1]"),
        (b"not json", b"not json"),
    ],
)
def test_fact41_the_model_is_the_routes_and_nothing_else_changes(body: bytes, expected: bytes) -> None:
    assert pinned(body, OPENAI) == expected


def test_fact58_vertex_gets_its_version_and_loses_what_it_refuses() -> None:
    body = b'{"model": "x", "context_management": {}, "betas": ["b"], "max_tokens": 1}'
    assert json.loads(pinned(body, VERTEX)) == {
        "anthropic_version": "vertex-2023-10-16",
        "betas": ["b"],
        "max_tokens": 1,
    }
    kept = json.loads(pinned(b'{"anthropic_version": "own"}', VERTEX))
    assert kept == {"anthropic_version": "own"}
    assert b"context_management" in pinned(body, ANTHROPIC)


@pytest.mark.parametrize(
    ("body", "url"),
    [
        (b'{"stream": true}', "/models/real:streamRawPredict"),
        (b'{"stream": false}', "/models/real:rawPredict"),
        (b"{}", "/models/real:rawPredict"),
        (b"[]", "/models/real:rawPredict"),
    ],
)
def test_a_streaming_call_to_vertex_has_its_own_path(body: bytes, url: str) -> None:
    assert sent(VERTEX, body=body, path="/v1/messages").target == url


def test_bedrock_has_the_model_in_its_path_and_no_credential() -> None:
    request = sent(BEDROCK, body=b'{"model": "kept"}', path="/model/asked/invoke")
    assert (request.target, request.headers, b"".join(request.body)) == ("/model/real/invoke", (), b'{"model": "kept"}')


def test_the_query_survives() -> None:
    asked = Asked("POST", "/v1/messages", query="beta=true")
    assert outbound(asked, b"{}", ANTHROPIC, is_buffered=False).target == "/v1/messages?beta=true"


def test_fact52_fact62_only_buffered_answers_have_a_deadline() -> None:
    asked = Asked("POST", CHAT)
    assert outbound(asked, b"{}", OPENAI, is_buffered=False).timeouts.first_byte == DAY
    assert outbound(asked, b"{}", OPENAI, is_buffered=True).timeouts.first_byte == 60
    assert outbound(asked, b"{}", replace(OPENAI, timeout_secs=120), is_buffered=True).timeouts.first_byte == 120


@pytest.mark.parametrize("base", ["ftp://h", "nothing", "https://"])
def test_a_url_that_cannot_be_called_is_an_error(base: str) -> None:
    with pytest.raises(ValueError):
        sent(replace(OPENAI, base_url=base))

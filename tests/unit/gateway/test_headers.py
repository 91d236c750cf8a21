import pytest

from kinference.gateway import headers
from kinference.ports import Headers

CLIENT: Headers = (
    (b"host", b"gateway"),
    (b"content-type", b"application/json"),
    (b"content-length", b"12"),
    (b"accept", b"*/*"),
    (b"accept-encoding", b"gzip, br"),
    (b"authorization", b"Bearer tenant"),
    (b"x-api-key", b"tenant"),
    (b"api-key", b"tenant"),
    (b"cookie", b"session=1"),
    (b"connection", b"keep-alive, X-Private"),
    (b"x-private", b"1"),
    (b"connection", b"x-second"),
    (b"x-second", b"2"),
    (b"keep-alive", b"5"),
    (b"te", b"trailers"),
    (b"transfer-encoding", b"chunked"),
    (b"x-forwarded-for", b"6.6.6.6"),
    (b"x-kinference-endpoint", b"spoofed"),
    (b"x-request-id", b"theirs"),
    (b"traceparent", b"00-1-2-01"),
    (b"anthropic-beta", b"a,b"),
    (b"anthropic-version", b"2023-06-01"),
    (b"idempotency-key", b"once"),
    (b"openai-organization", b"org-1"),
    (b"x-session-id", b"s"),
)


def test_an_engine_sees_the_clients_fields_without_credentials_and_hops() -> None:
    assert headers.to_engine(CLIENT, "req_1") == (
        (b"content-type", b"application/json"),
        (b"accept", b"*/*"),
        (b"traceparent", b"00-1-2-01"),
        (b"anthropic-beta", b"a,b"),
        (b"anthropic-version", b"2023-06-01"),
        (b"idempotency-key", b"once"),
        (b"openai-organization", b"org-1"),
        (b"x-session-id", b"s"),
        (b"x-request-id", b"req_1"),
        (b"accept-encoding", b"identity"),
    )


def test_a_provider_sees_a_short_list() -> None:
    assert headers.to_provider(CLIENT, "req_1") == (
        (b"content-type", b"application/json"),
        (b"accept", b"*/*"),
        (b"traceparent", b"00-1-2-01"),
        (b"anthropic-beta", b"a,b"),
        (b"anthropic-version", b"2023-06-01"),
        (b"idempotency-key", b"once"),
        (b"x-request-id", b"req_1"),
        (b"accept-encoding", b"identity"),
    )


def test_a_client_sees_nothing_of_the_inside() -> None:
    received = (
        (b"content-type", b"application/json"),
        (b"server", b"uvicorn"),
        (b"via", b"node-7.internal"),
        (b"set-cookie", b"a=b"),
        (b"retry-after", b"7"),
        (b"x-ratelimit-remaining-tokens", b"99"),
        (b"content-length", b"3"),
        (b"transfer-encoding", b"chunked"),
    )
    assert headers.to_client(received) == [(b"content-type", b"application/json"), (b"retry-after", b"7")]


@pytest.mark.parametrize(
    ("value", "kept"),
    [(b"abc-1", "abc-1"), (b"", None), (b"a b", None), (b"a\x00", None), ("é".encode(), None), (b"x" * 257, None)],
)
def test_a_request_id_is_kept_when_it_is_one(value: bytes, kept: str | None) -> None:
    assert headers.request_id_of({b"x-request-id": value}) == kept


def test_a_stream_is_told_by_its_content_type() -> None:
    assert headers.is_event_stream(b"Text/Event-Stream; charset=utf-8")
    assert not headers.is_event_stream(b"application/json")
    assert not headers.is_event_stream(None)


@pytest.mark.parametrize(("value", "length"), [(b"12", 12), (b"0", 0), (b"-1", None), (b"1e3", None), (b"", None)])
def test_a_content_length_is_a_decimal_number(value: bytes, length: int | None) -> None:
    assert headers.content_length(((b"content-length", value),)) == length


@pytest.mark.parametrize("name", [b"x-request-id", b"request-id", b"x-amzn-requestid", b"apim-request-id"])
def test_a_providers_own_id_is_found_under_any_of_its_names(name: bytes) -> None:
    assert headers.upstream_id_of(((b"server", b"x"), (name, b"req_theirs"))) == "req_theirs"
    assert headers.upstream_id_of(((name, b"no id"),)) == headers.upstream_id_of(()) == ""

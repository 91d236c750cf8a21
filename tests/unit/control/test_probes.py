import json

import pytest

from kinference.control.probes import OLDER_CHAT, PROBES, Verdict, judge, payload, told, wants_older_budget


def test_probes_are_tried_in_the_order_of_the_original() -> None:
    assert [(probe.protocol, probe.path) for probe in PROBES] == [
        ("openai_chat_completions", "/v1/chat/completions"),
        ("anthropic_messages", "/v1/messages"),
        ("openai_responses", "/v1/responses"),
        ("openai_completions", "/v1/completions"),
        ("openai_embeddings", "/v1/embeddings"),
    ]


@pytest.mark.parametrize(
    ("status", "body", "verdict"),
    [
        (200, b"", Verdict.OK),
        (201, b"", Verdict.OK),
        (401, b"", Verdict.CREDENTIALS),
        (403, b"", Verdict.CREDENTIALS),
        (400, b"", Verdict.REQUEST_SHAPE),
        (404, b"", Verdict.REQUEST_SHAPE),
        (405, b"unauthorized", Verdict.REQUEST_SHAPE),
        (422, b"", Verdict.REQUEST_SHAPE),
        (400, b'{"error": {"code": "INVALID_API_KEY"}}', Verdict.CREDENTIALS),
        (404, b"permission_denied", Verdict.CREDENTIALS),
        (429, b"", Verdict.RATE_LIMITED),
        (500, b"", Verdict.UPSTREAM_HEALTH),
        (599, b"", Verdict.UPSTREAM_HEALTH),
        (302, b"", Verdict.UNEXPECTED),
        (415, b"", Verdict.UNEXPECTED),
        (418, b"", Verdict.UNEXPECTED),
    ],
)
def test_fact20_an_answer_is_classified(status: int, body: bytes, verdict: Verdict) -> None:
    assert judge(status, body) is verdict


def test_a_payload_names_the_model_unless_the_path_does() -> None:
    assert json.loads(payload(PROBES[0], "m"))["model"] == "m"
    in_path = json.loads(payload(PROBES[1], None))
    assert "model" not in in_path
    assert in_path["anthropic_version"] == "vertex-2023-10-16"


def test_fact17_only_a_refused_newer_budget_is_worth_another_try() -> None:
    refusal = b"Unsupported parameter: 'max_completion_tokens'"
    assert wants_older_budget(PROBES[0], refusal)
    assert not wants_older_budget(PROBES[0], b"no such model")
    assert not wants_older_budget(OLDER_CHAT, refusal)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "no such model"}}', "HTTP 404: no such model"),
        (b'{"error": "plain"}', "HTTP 404: plain"),
        (b'{"error": {"message": "key sk-1 is wrong"}}', "HTTP 404: key [redacted] is wrong"),
        (b'{"error": {"message": "two\\nlines"}}', "HTTP 404: two lines"),
        (b"<html>intranet</html>", "HTTP 404"),
        (b'{"secret": "of another service"}', "HTTP 404"),
        (b'["error"]', "HTTP 404"),
        (b"[" * 100_000, "HTTP 404"),
    ],
)
def test_a_refusal_is_repeated_only_as_far_as_it_is_an_apis_own_message(body: bytes, message: str) -> None:
    assert told(404, body, "sk-1") == message


def test_what_is_repeated_is_bounded() -> None:
    assert len(told(400, json.dumps({"error": "x" * 10_000}).encode(), "")) < 250

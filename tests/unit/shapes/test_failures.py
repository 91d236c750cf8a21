import pytest

from kinference.shapes.answers import Failed
from kinference.shapes.failures import (
    failure_in,
    failure_of,
    gemini_status,
    messages_type,
    openai_code,
    openai_type,
    unlisted,
)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"type": "overloaded_error"}, 529),
        ({"type": "BadRequestError", "code": 400}, 400),
        ({"type": "whatever", "code": 503}, 503),
        ({"type": "invalid_request_error", "code": "context_length_exceeded"}, 400),
        ({"code": "rate_limit_exceeded"}, 429),
        ({"code": 429, "status": "RESOURCE_EXHAUSTED"}, 429),
        ({"status": "UNAVAILABLE"}, 503),
        ({"code": 200}, 500),
        ({"code": [], "type": {}}, 500),
        ({}, 500),
    ],
)
def test_an_error_has_the_status_that_it_gives_or_that_its_kind_stands_for(
    error: dict[str, object], status: int
) -> None:
    assert failure_of(error).status == status


def test_an_error_without_words_gets_some() -> None:
    assert failure_of({"message": None}) == Failed("the destination reported an error", "", 500)


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "busy", "type": "overloaded_error"}},
        {"error": "busy", "error_type": "overloaded_error"},
        {"object": "error", "message": "busy", "type": "overloaded_error"},
        {"detail": "busy", "type": "overloaded_error"},
    ],
)
def test_an_error_is_found_wherever_servers_have_it(body: dict[str, object]) -> None:
    assert failure_in(body) == Failed("busy", "overloaded_error", 529)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, ("invalid_request_error", None, "invalid_request_error", "INVALID_ARGUMENT")),
        (401, ("authentication_error", None, "authentication_error", "UNAUTHENTICATED")),
        (402, ("invalid_request_error", None, "billing_error", "INVALID_ARGUMENT")),
        (403, ("permission_error", None, "permission_error", "PERMISSION_DENIED")),
        (404, ("not_found_error", None, "not_found_error", "NOT_FOUND")),
        (408, ("timeout", None, "timeout_error", "DEADLINE_EXCEEDED")),
        (409, ("conflict", None, "conflict_error", "ABORTED")),
        (413, ("invalid_request_error", None, "request_too_large", "INVALID_ARGUMENT")),
        (422, ("invalid_request_error", None, "invalid_request_error", "INVALID_ARGUMENT")),
        (429, ("rate_limit_error", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED")),
        (500, ("server_error", None, "api_error", "INTERNAL")),
        (501, ("server_error", None, "api_error", "UNIMPLEMENTED")),
        (503, ("server_error", "overloaded", "overloaded_error", "UNAVAILABLE")),
        (504, ("timeout", None, "timeout_error", "DEADLINE_EXCEEDED")),
        (529, ("server_error", "overloaded", "overloaded_error", "UNAVAILABLE")),
    ],
)
def test_every_client_has_its_own_word_for_a_status(status: int, words: tuple[str | None, ...]) -> None:
    assert (openai_type(status), openai_code(status), messages_type(status), gemini_status(status)) == words


def test_an_error_comes_out_of_its_list() -> None:
    error = {"error": {"message": "busy"}}
    assert unlisted([error]) == unlisted(error) == error
    assert unlisted([]) == []
    assert unlisted([{"a": 1}]) == [{"a": 1}]

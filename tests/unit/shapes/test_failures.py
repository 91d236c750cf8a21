import pytest

from kinference.shapes.answers import Failed
from kinference.shapes.failures import failure_of


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

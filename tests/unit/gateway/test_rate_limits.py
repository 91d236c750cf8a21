import pytest

from kinference.gateway.rate_limits import rate_limit_fields
from kinference.gateway.routes import Dialect
from kinference.ports import Allowance, PickResult
from kinference.vocabulary import Outcome

BOTH = PickResult(Outcome.OK, requests=Allowance(60, 59, 1.0), tokens=Allowance(1_000, 250, 45.0))


def test_openais_clients_read_what_is_left_under_openais_names() -> None:
    assert rate_limit_fields(BOTH, Dialect.OPENAI, 0.0) == [
        (b"x-ratelimit-limit-requests", b"60"),
        (b"x-ratelimit-remaining-requests", b"59"),
        (b"x-ratelimit-reset-requests", b"1s"),
        (b"x-ratelimit-limit-tokens", b"1000"),
        (b"x-ratelimit-remaining-tokens", b"250"),
        (b"x-ratelimit-reset-tokens", b"45s"),
    ]


def test_anthropics_clients_read_it_under_theirs_with_the_time_at_which_it_is_whole_again() -> None:
    fields = dict(rate_limit_fields(BOTH, Dialect.ANTHROPIC, 1_700_000_000.0))
    assert fields[b"anthropic-ratelimit-tokens-limit"] == b"1000"
    assert fields[b"anthropic-ratelimit-tokens-remaining"] == b"250"
    assert fields[b"anthropic-ratelimit-tokens-reset"] == b"2023-11-14T22:14:05Z"


def test_geminis_clients_have_no_such_fields_and_who_has_no_limit_gets_none() -> None:
    assert rate_limit_fields(BOTH, Dialect.GEMINI, 0.0) == []
    assert rate_limit_fields(PickResult(Outcome.OK), Dialect.OPENAI, 0.0) == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, b"0ms"), (0.12, b"120ms"), (1.5, b"1.5s"), (59.0, b"59s"), (60.0, b"1m0s"), (377.0, b"6m17s")],
)
def test_times_are_written_as_openai_writes_them(seconds: float, text: bytes) -> None:
    picked = PickResult(Outcome.OK, requests=Allowance(1, 0, seconds))
    assert dict(rate_limit_fields(picked, Dialect.OPENAI, 0.0))[b"x-ratelimit-reset-requests"] == text

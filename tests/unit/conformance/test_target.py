import pytest

from kinference.conformance.target import (
    EMPTY_TENANT,
    MODEL,
    PATIENT,
    SHORT_TTL,
    SMALL_BUFFER,
    Limits,
    Names,
    Target,
    missing,
)

PLAIN = Target("localhost", 1)


def test_what_a_target_lacks_is_said_as_the_flags_that_would_give_it() -> None:
    assert missing((MODEL, SMALL_BUFFER), PLAIN) == "--model and --buffer-max of 64MiB or less"
    assert missing((), PLAIN) == ""


def test_what_it_has_is_not_missing() -> None:
    target = Target("h", 1, Limits(buffer_max=1000, body_ttl=9.0), Names(model="m", empty_tenant=False))
    assert missing((MODEL, SMALL_BUFFER, SHORT_TTL, EMPTY_TENANT, PATIENT), target) == ""


def test_a_target_is_patient_only_with_both_its_timers() -> None:
    assert missing((PATIENT,), PLAIN) == ""
    assert missing((PATIENT,), Target("h", 1, Limits(push_idle=1.0)))


@pytest.mark.parametrize(("host", "address"), [("localhost", "localhost:1"), ("::1", "[::1]:1")])
def test_an_ipv6_address_gets_its_brackets(host: str, address: str) -> None:
    assert Target(host, 1).address == address

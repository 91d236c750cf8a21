import pytest
from grpc import StatusCode

from kinference.conformance.claims import Unexpected, expect, expect_equal


def test_a_claim_that_holds_says_nothing() -> None:
    expect(1, "a number")
    expect_equal(1, 1, "a number")


def test_a_claim_that_does_not_hold_says_what_it_was() -> None:
    with pytest.raises(Unexpected, match=r"^nothing came$"):
        expect(b"", "nothing came")


def test_statuses_are_told_by_name_and_long_values_are_cut() -> None:
    with pytest.raises(Unexpected, match=r"^the status: expected NOT_FOUND, got OK$"):
        expect_equal(StatusCode.OK, StatusCode.NOT_FOUND, "the status")
    with pytest.raises(Unexpected) as raised:
        expect_equal("x" * 1000, "", "the text")
    assert len(str(raised.value)) < 200

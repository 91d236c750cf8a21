from random import Random

import pytest
from grpc import StatusCode

from kinference.conformance.claims import Unexpected, expect, expect_equal, expect_scattered


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


def test_random_ids_are_scattered_and_numbers_in_a_row_are_not() -> None:
    random = Random(1)
    expect_scattered([random.getrandbits(64) for _ in range(20)])
    for ids in ([0, 2**63], [2**63, 2**63, 1], list(range(2**60, 2**60 + 20)), [1, 2, 3]):
        with pytest.raises(Unexpected):
            expect_scattered(ids)

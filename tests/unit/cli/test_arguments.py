import argparse

import pytest

from kinference.cli.arguments import at_least_one, positive


@pytest.mark.parametrize(("text", "value"), [("1", 1.0), ("0.5", 0.5), ("1e3", 1000.0)])
def test_positive_numbers(text: str, value: float) -> None:
    assert positive(text) == value


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "x", ""])
def test_numbers_that_are_not_positive(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        positive(text)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "x", "", "9999999999", "٣"])
def test_counts_start_at_one(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        at_least_one(text)
    assert at_least_one("3") == 3

"""Gaps between tokens."""

import pytest

from kinference.sim.cluster.gaps import Gaps


def test_percentiles_are_right_within_a_hundredth() -> None:
    gaps = Gaps()
    gaps.add(0.010, 98)
    gaps.add(0.150, 2)
    assert gaps.percentile_ms(0.5) == pytest.approx(10.0, rel=0.011)
    assert gaps.percentile_ms(0.99) == pytest.approx(150.0, rel=0.011)


def test_no_gap_is_no_time() -> None:
    assert Gaps().percentile_ms(0.5) == 0.0

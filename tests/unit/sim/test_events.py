import pytest

from kinference.sim.events import SimRequest


def test_a_request_has_a_prompt() -> None:
    with pytest.raises(AssertionError):
        SimRequest(1, 0, 5)


def test_a_request_may_ask_for_no_output_but_not_for_less() -> None:
    assert SimRequest(1, 5, 0).output_tokens == 0
    with pytest.raises(AssertionError):
        SimRequest(1, 5, -1)

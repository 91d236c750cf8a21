import pytest

from kinference.sim.options import EngineOptions, KvEventOptions
from kinference.sim.timing import Timing


def test_a_small_kv_cache_bounds_the_longest_request() -> None:
    options = EngineOptions(models=("m",), timing=Timing(kv_blocks=10, block_tokens=16))
    assert options.model_tokens_max == 160


def test_kv_events_are_off_unless_asked_for() -> None:
    assert EngineOptions(models=("m",)).kv_events == KvEventOptions("", "")


def test_an_engine_needs_a_name() -> None:
    with pytest.raises(ValueError, match="model name"):
        EngineOptions(models=("",))


def test_time_goes_forward() -> None:
    with pytest.raises(ValueError, match="speed"):
        EngineOptions(models=("m",), speed=0)


def test_an_answer_has_a_token() -> None:
    with pytest.raises(ValueError, match="output_tokens"):
        EngineOptions(models=("m",), output_tokens=0)

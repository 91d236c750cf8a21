"""The keys of `routing.admission`."""

import pytest

from kinference.config.admission import Admission, Waits
from kinference.config.keys import keys_of
from kinference.config.load import parse
from kinference.config.problems import InvalidConfig
from kinference.config.reference import written


def test_a_class_has_its_own_waits_and_the_rest_their_defaults() -> None:
    text = "routing: {admission: {start_within: 100ms, batch: {objective: 1m, wait_max: 1h}}}"
    admission = parse(text).routing.admission
    assert (admission.enabled, admission.start_within, admission.waiting_max) == (True, 0.1, 4096)
    assert (admission.batch.objective, admission.batch.wait_max) == (60.0, 3600.0)
    assert (admission.interactive.objective, admission.interactive.wait_max) == (2.0, 60.0)


def test_waits_are_given_in_full() -> None:
    with pytest.raises(InvalidConfig, match="wait_max"):
        parse("routing: {admission: {batch: {objective: 1m}}}")


def test_the_reference_tells_what_each_class_waits_when_nothing_is_said() -> None:
    for key in keys_of(Admission).values():
        if key.kind is Waits:
            told = written(key.default)
            assert isinstance(told, dict)
            assert key.help.endswith(f"absent: objective and wait_max are {told['objective']} and {told['wait_max']}.")

import logging

import pytest

from kinference.fleet.notice import Notice
from tests.unit.fleet.fakes import spec


def test_a_lasting_condition_is_told_once_and_its_end_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    notice = Notice(spec())
    for _ in range(3):
        notice.problem("is not ready: down")
    for _ in range(3):
        notice.fine("is ready")
    notice.problem("is not ready: down")
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", "endpoint 10.0.0.1:8000 of pool default/pool is not ready: down"),
        ("INFO", "endpoint 10.0.0.1:8000 of pool default/pool is ready"),
        ("WARNING", "endpoint 10.0.0.1:8000 of pool default/pool is not ready: down"),
    ]

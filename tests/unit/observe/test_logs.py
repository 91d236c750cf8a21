"""Log lines: one event a line, bounded, escaped, without credentials."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kinference.observe.logs import (
    FIELD_CHARS_MAX,
    FIELDS_MAX,
    MESSAGE_CHARS_MAX,
    JsonFormatter,
    LogFormat,
    TextFormatter,
    configure_logs,
    redacted,
)

LONGEST_LINE = MESSAGE_CHARS_MAX + FIELDS_MAX * FIELD_CHARS_MAX


def record(message: str = "served", **extra: Any) -> logging.LogRecord:
    made = logging.LogRecord("kinference.test", logging.INFO, "f", 1, message, None, None)
    made.created = 1_700_000_000.25
    vars(made).update(extra)
    return made


def as_json(made: logging.LogRecord) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(JsonFormatter().format(made))
    return line


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, put back as it was."""
    logger = logging.getLogger()
    handlers, level = logger.handlers[:], logger.level
    logger.handlers.clear()
    yield logger
    logger.handlers[:] = handlers
    logger.setLevel(level)


def test_a_json_line_has_time_level_logger_message_and_fields() -> None:
    assert as_json(record(status=200, model="m", ttft_ms=None, streaming=True, ms=1.5)) == {
        "ts": "2023-11-14T22:13:20.250Z",
        "level": "info",
        "logger": "kinference.test",
        "msg": "served",
        "status": 200,
        "model": "m",
        "ttft_ms": None,
        "streaming": True,
        "ms": 1.5,
    }


def test_a_text_line_is_for_people() -> None:
    line = TextFormatter().format(record(status=200, model="a model", empty="", unknown=None, none_cached=0))
    assert line == '2023-11-14T22:13:20.250Z INFO    kinference.test: served status=200 model="a model" none_cached=0'


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_control_characters_are_escaped(formatter: logging.Formatter) -> None:
    line = formatter.format(record("a\nb\x1b[31m\x9b\u202e", model="x\r\ny\u2028"))
    assert line.isprintable()


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_a_line_is_bounded(formatter: logging.Formatter) -> None:
    line = formatter.format(record("m" * 10**6, **{f"field{place}": "v" * 10**5 for place in range(200)}))
    assert len(line) < LONGEST_LINE * 1.1


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [1]}, (1, 2), object(), b"bytes", {("t",): 1}])
def test_a_value_of_any_kind_makes_valid_json(value: object) -> None:
    assert isinstance(as_json(record(value=value))["value"], str)


def test_a_field_never_replaces_what_every_line_has() -> None:
    assert as_json(record(ts="never", level="mine", logger="x"))["ts"] == "2023-11-14T22:13:20.250Z"


def test_a_trace_is_one_field_of_json_and_lines_of_text() -> None:
    made = record()
    try:
        raise ValueError("Bearer hunter2hunter2\x1b")  # noqa: TRY301 - an exception with a trace is what is tested
    except ValueError as error:
        made.exc_info = (type(error), error, error.__traceback__)
    assert "ValueError" in as_json(made)["trace"]
    text = TextFormatter().format(made)
    assert text.splitlines()[-1] == "ValueError: Bearer [redacted]"
    assert "hunter2" not in text + json.dumps(as_json(made))


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer hunter2hunter2",
        "authorization=Basic hunter2hunter2",
        "{'x-api-key': 'hunter2hunter2'}",
        '{"api_key": "hunter2hunter2"}',
        "X-API-Key: hunter2hunter2",
        "x-goog-api-key=hunter2hunter2&a=b",
        "bearer hunter2hunter2",
        "key sk-hunter2hunter2 refused",
        "sk-ant-api03-hunter2hunter2",
        "BEARER hunter2hunter2",
        "\u017fk-hunter2hunter2",  # a letter that the pattern takes for an s
        "api_\u212aey: hunter2hunter2",  # and one for a k
    ],
)
def test_what_looks_like_a_credential_is_blanked(text: str) -> None:
    assert "hunter2" not in redacted(text)
    assert "[redacted]" in redacted(text)
    for formatter in (JsonFormatter(), TextFormatter()):
        assert "hunter2" not in formatter.format(record(text, detail=text))


def test_a_field_named_for_a_credential_is_blanked() -> None:
    assert as_json(record(api_key="hunter2hunter2"))["api_key"] == "[redacted]"


def test_ordinary_text_is_left_alone() -> None:
    text = "pool default/llama: no endpoint is ready; task-force risk-averse 2001:db8::1 a=b"
    assert redacted(text) == text


def test_every_logger_goes_to_the_one_handler(root: logging.Logger) -> None:
    stream = io.StringIO()
    configure_logs(LogFormat.JSON, "info", stream)
    configure_logs(LogFormat.JSON, "info", stream)
    logging.getLogger("kinference.gateway").info("one %s", "line", extra={"status": 200})
    logging.getLogger("kinference.gateway").debug("below the level")
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["msg"] == "one line"
    assert len(root.handlers) == 1


def test_the_default_stream_is_stderr(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(LogFormat.TEXT, "warning")
    logging.getLogger("kinference").warning("look")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("WARNING kinference: look\n")

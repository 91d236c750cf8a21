"""Logs: one bounded line an event, as JSON for machines or text for people, on stderr.

What reaches a log may have come from a client, so control characters are escaped, lengths are bounded, and what looks
like a credential is blanked. Nothing should log a credential in the first place: this is the last line of defence.
"""

import json
import logging
import math
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import TextIO, TypeAlias

MESSAGE_CHARS_MAX = 8192
FIELD_CHARS_MAX = 2048
FIELDS_MAX = 48
TRACE_CHARS_MAX = 16384

LEVELS = ("debug", "info", "warning", "error")

Plain: TypeAlias = bool | int | float | str | None

_OWN = frozenset(vars(logging.LogRecord("", 0, "", 0, "", None, None))) | {"message", "asctime", "taskName"}
_CREDENTIAL = re.compile(
    r"(?P<kept>\b(?:bearer|basic)\s+|\b(?:x-api-key|api[-_]?key|authorization|x-goog-api-key)[\"']?\s*[:=]\s*[\"']?)"
    r"(?!(?:bearer|basic)\s)[^\s\"',;&]{4,}"
    r"|\bsk-[A-Za-z0-9_-]{8,}",
    re.IGNORECASE,
)
_CREDENTIAL_MARKS = ("key", "auth", "bearer", "basic", "sk-")
"""One of these is in every text that the pattern finds: searching for them costs a tenth of the pattern's search."""
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    code: f"\\u{code:04x}" for code in (*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
}

_QUOTED = re.compile(r"[\s\"=]")
_LINE = json.JSONEncoder(separators=(",", ":"))


class LogFormat(Enum):
    JSON = "json"
    TEXT = "text"


def configure_logs(log_format: LogFormat, level: str, stream: TextIO | None = None) -> None:
    """Send every logger's lines to one handler. The composition root calls this once, before anything else."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonFormatter() if log_format is LogFormat.JSON else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: ts, level, logger, msg, then the fields given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Plain] = {
            "ts": timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": redacted(clipped(record.getMessage(), MESSAGE_CHARS_MAX)),
        }
        for name, value in fields_of(record).items():
            line.setdefault(name, value)
        if trace := trace_of(self, record):
            line["trace"] = trace
        return _LINE.encode(line)


class TextFormatter(logging.Formatter):
    """Time, level, logger, message and `name=value` fields, the empty ones left out; a trace follows on lines of its
    own.
    """

    def format(self, record: logging.LogRecord) -> str:
        message = redacted(clipped(record.getMessage(), MESSAGE_CHARS_MAX))
        told = {name: value for name, value in fields_of(record).items() if value not in (None, "")}
        fields = "".join(f" {name}={_spelled(value)}" for name, value in told.items())
        line = f"{timestamp(record.created)} {record.levelname:<7} {record.name}: {message}{fields}"
        trace = trace_of(self, record)
        return "\n".join(printable(part) for part in (line, *trace.splitlines()))


def fields_of(record: logging.LogRecord) -> Mapping[str, Plain]:
    """What the caller gave as `extra`, bounded and redacted."""
    given = [(name, value) for name, value in vars(record).items() if name not in _OWN]
    return {name: _plain(name, value) for name, value in given[:FIELDS_MAX]}


def trace_of(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """The exception's trace, its innermost part when it is too long; "" when there is none."""
    if not record.exc_info:
        return ""
    return redacted(formatter.formatException(record.exc_info)[-TRACE_CHARS_MAX:])


def redacted(text: str) -> str:
    """The text with everything that looks like a credential blanked."""
    folded = text.casefold()
    if not any([mark in folded for mark in _CREDENTIAL_MARKS]):  # noqa: C419 - a generator costs as much as the search
        return text
    return _CREDENTIAL.sub(lambda match: (match["kept"] or "") + "[redacted]", text)


def clipped(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else text[:chars_max] + "..."


def printable(text: str) -> str:
    """Control characters, and those that turn the direction of text, as escapes."""
    return text if text.isascii() and text.isprintable() else text.translate(_CONTROLS)


def timestamp(seconds: float) -> str:
    """ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(name: str, value: object) -> Plain:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    # The name takes part, so that a field called `api_key` is blanked whatever its value looks like.
    return redacted(f"{name}={clipped(str(value), FIELD_CHARS_MAX)}")[len(name) + 1 :]


def _spelled(value: Plain) -> str:
    return json.dumps(value) if isinstance(value, str) and _QUOTED.search(value) else str(value)

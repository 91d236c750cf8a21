"""What an answer that is not a success means: whose fault it is, and what the client gets to see of it."""

import math
import re
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from typing import Any, Final

import msgspec

from kinference.errors import UpstreamCut, UpstreamTimeout
from kinference.gateway import errors, headers
from kinference.gateway.backends import Leg
from kinference.gateway.errors import Refusal
from kinference.ids import Seconds
from kinference.ports import Headers, UpstreamAnswer
from kinference.shapes.scan import BadBody, decode
from kinference.wire.fields import header
from kinference.wire.patience import Patience

ERROR_BODY_MAX = 1024 * 1024
"""A longer error is told by its status alone."""
ERROR_PATIENCE: Final[Seconds] = 10.0
"""And one that takes longer to be told."""
RETRY_AFTER_MAX: Final[Seconds] = 24 * 3600.0
"""No destination sends a client away for longer."""
_NOT_OFFERED = frozenset({501, 505})
"""Of the 5xx those that are about what was asked for; the others are a destination's trouble, whoever made them up: the
520 to 530 of a CDN before a provider are."""
_HTTP_BELOW = 600
_ACCOUNT_MARKS = (b"credit balance", b"insufficient_quota", b"billing_error", b"exceeded your current quota")
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_DATE = re.compile(
    rb"[A-Z][a-z]{2,8}(?:, \d\d[ -][A-Z][a-z]{2}[ -]\d{2,4} [\d:]{8} GMT| [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4})"
)
"""What HTTP writes now, what it wrote before, and what C writes: all of them are in UTC."""
_RETRY_DELAY = re.compile(rb'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"')
"""Google's way to say that a quota is one by the minute, in the words that others have for one that is spent."""
_TOO_LONG_MARKS = (
    *("maximum context length", "context window", "context limit", "prompt is too long"),
    *("input token count", "input is too long", "too many input tokens", "exceeds the available context"),
)
"""What each API says of a prompt that is too long."""
_TOO_LONG_STATUSES = frozenset({400, 413, 422})
TOO_LONG_WORDS: Final = "prompt is too long"
"""By which agents know that they have to shorten it: those of OpenAI's API go by the code."""
_RETOLD_STATUS = {424: 502, 529: 503}
MESSAGE_MAX = 2048
_NO_PATH = ("", "not found", "file not found")
_REDACTED = b"[redacted]"
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32


class Blame(Enum):
    """Whose fault a failed answer is, and so what to do with it."""

    CLIENT = auto()
    """Relayed as it is."""
    DESTINATION = auto()
    """Another destination may do better."""
    CREDENTIAL = auto()
    """It refused the gateway's own credential, about which the client can do nothing."""
    ACCOUNT = auto()
    """The gateway's account there is out of money or quota."""


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """A destination's error, read whole."""

    status: int
    headers: Headers
    body: bytes


async def read_error(answer: UpstreamAnswer, leg: Leg, patience: Seconds = ERROR_PATIENCE) -> ErrorAnswer:
    """Read a failed answer whole, decoded and without our credential, and give its connection back."""
    try:
        async with Patience(patience):
            body = await _read(answer.chunks())
    except (UpstreamCut, UpstreamTimeout, TimeoutError):
        body = b""
    finally:
        await answer.close()
    if header(answer.headers, b"content-encoding") is not None:
        body = _decode(body)
    kept = [(name, value) for name, value in headers.to_client(answer.headers) if name != b"content-encoding"]
    return cleaned(ErrorAnswer(answer.status, kept, body), leg)


def cleaned(error: ErrorAnswer, leg: Leg) -> ErrorAnswer:
    """The error without our credential, should it repeat it."""
    return replace(error, body=error.body.replace(leg.secret.encode(), _REDACTED)) if leg.secret else error


async def _read(chunks: AsyncIterator[bytes]) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > ERROR_BODY_MAX:
            return b""
    return bytes(body)


def _decode(body: bytes) -> bytes:
    """Undo gzip or deflate within bounds; what cannot be read is told by its status alone."""
    inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        plain = inflater.decompress(body, ERROR_BODY_MAX)
    except zlib.error:
        return b""
    return plain if inflater.eof else b""


def blame(answer: ErrorAnswer, leg: Leg) -> Blame:
    """Whose fault it is."""
    is_spent = any(mark in answer.body for mark in _ACCOUNT_MARKS) and _RETRY_DELAY.search(answer.body) is None
    if leg.is_provider and (is_spent or answer.status == 402):  # noqa: PLR2004 - HTTP
        return Blame.ACCOUNT
    if answer.status in (401, 403):  # no credential of the client's ever got there
        return Blame.CREDENTIAL
    return Blame.CLIENT if _is_about_the_request(answer.status) else Blame.DESTINATION


def _is_about_the_request(status: int) -> bool:
    is_4xx = errors.BAD_REQUEST.status <= status < errors.INTERNAL.status
    return (is_4xx and status != errors.RATE_LIMITED.status) or status in _NOT_OFFERED


def lacks_path(answer: ErrorAnswer) -> bool:
    """Whether a server says that it has no such path, and not that it has no such model."""
    if answer.status in (405, 501):
        return True
    return answer.status == errors.NOT_FOUND.status and _message(answer.body).strip(" .").lower() in _NO_PATH


class _Told(msgspec.Struct):
    """An error of any API: the message is in `error`, or stands alone."""

    error: dict[str, Any] | str | None = None
    message: str | None = None


_TOLD: Final = msgspec.json.Decoder(_Told | list[_Told])


def retold(answer: ErrorAnswer, wall: Seconds) -> Refusal:
    """A destination's error for a client of another API, in whose words it will be written, at this time."""
    status = _RETOLD_STATUS.get(answer.status, answer.status)
    message = _message(answer.body) or f"the destination answered {answer.status}"
    if status in _TOO_LONG_STATUSES and _is_too_long(message, answer.body):
        words = message if TOO_LONG_WORDS in message.lower() else f"{TOO_LONG_WORDS}: {message}"
        return Refusal(errors.TOO_LONG, words[:MESSAGE_MAX])
    return Refusal(errors.of_status(status), message[:MESSAGE_MAX], retry_after(answer, wall))


def _is_too_long(message: str, body: bytes) -> bool:
    told = message.lower()
    return b'"context_length_exceeded"' in body or any(mark in told for mark in _TOO_LONG_MARKS)


def _message(body: bytes) -> str:
    try:
        told = decode(_TOLD, body)
    except BadBody:
        return ""
    if isinstance(told, list):
        told = told[0] if told else _Told()
    inner = told.error.get("message") if isinstance(told.error, dict) else told.error
    text = inner if isinstance(inner, str) else told.message or ""
    return "".join(char if char.isprintable() else " " for char in text)


def waiting(told: ErrorAnswer | Refusal, wait: Seconds) -> ErrorAnswer | Refusal:
    """The same, with the time after which its client may try again."""
    if isinstance(told, Refusal):
        return replace(told, retry_after=wait)
    kept = [field for field in told.headers if not field[0].startswith(b"retry-after")]
    return replace(told, headers=(*kept, (b"retry-after", str(math.ceil(wait)).encode())))


def retry_after(answer: ErrorAnswer, wall: Seconds) -> Seconds | None:
    """How long a destination asks to be left alone, from this time of day on, wherever it says so: Google does in the
    body.
    """
    fields = ((b"retry-after-ms", 0.001), (b"retry-after", 1.0))
    for name, unit in fields:
        if _NUMBER.fullmatch(told := header(answer.headers, name) or b""):
            return min(float(told) * unit, RETRY_AFTER_MAX)
    if (date := _time_of(told)) is not None:
        return min(max(0.0, date - wall), RETRY_AFTER_MAX)
    delay = _RETRY_DELAY.search(answer.body)
    return min(float(delay[1]), RETRY_AFTER_MAX) if delay is not None else None


def _time_of(date: bytes) -> Seconds | None:
    """The time that a date of HTTP's names, in any of its three forms; None of what is none."""
    if not _DATE.fullmatch(date):
        return None
    try:
        return parsedate_to_datetime(date.decode("ascii")).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):  # no such day
        return None


def told_to_client(answer: ErrorAnswer, fault: Blame, wall: Seconds) -> ErrorAnswer | Refusal:
    """What is left for the client when no other destination did better."""
    if fault is Blame.CREDENTIAL:
        return Refusal(errors.UPSTREAM_AUTH, "the destination refused the gateway's credential")
    if fault is Blame.ACCOUNT:
        return Refusal(errors.UPSTREAM_ACCOUNT, "the gateway's account at the destination cannot be used")
    if not errors.BAD_REQUEST.status <= answer.status < _HTTP_BELOW:
        return Refusal(errors.UPSTREAM_BROKEN, f"the destination answered {answer.status}, which is no answer")
    is_json = b"json" in (header(answer.headers, b"content-type") or b"").lower()
    if is_json and answer.body:
        return answer
    message = f"the destination answered {answer.status}"
    return Refusal(errors.of_status(answer.status), message, retry_after(answer, wall))

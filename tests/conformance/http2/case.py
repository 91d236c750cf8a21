"""What a case of the table is: what a client sends, and what has to come of it."""

from dataclasses import dataclass
from enum import StrEnum

from tests.conformance.http2.frames import CODES, GREETING


class Scope(StrEnum):
    CONNECTION = "connection"
    STREAM = "stream"
    ANSWERED = "answered"
    NONE = "none"


@dataclass(frozen=True)
class Outcome:
    """How far it reaches, and the error's name, or what the answer or the silence consists of."""

    scope: Scope
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.scope}: {self.detail}" if self.detail else str(self.scope)


@dataclass(frozen=True)
class Case:
    """One case. After all that it sends, the client asks for something harmless on a stream of its own."""

    section: str
    """`9113/6.5` or `7541/6.3`, or `grpc`."""
    name: str
    sends: bytes
    outcome: Outcome
    stream: int = 1
    """The one whose fate counts."""
    then: bytes = b""
    """Sent when that stream has ended, or another one, if there is another to wait for."""
    after: int = 0
    reply: bytes = b""
    """A frame that has to come back."""
    counts_data: bool = False
    """Whether the bytes that the stream brings are the outcome."""
    greeting: bytes = GREETING

    def __post_init__(self) -> None:
        assert self.outcome.scope not in (Scope.CONNECTION, Scope.STREAM) or self.outcome.detail in CODES

    def __str__(self) -> str:
        return f"{self.section} {self.name}"


def broken(code: str) -> Outcome:
    """The connection ends."""
    return Outcome(Scope.CONNECTION, code)


def reset(code: str) -> Outcome:
    """The stream ends, and the connection lives."""
    return Outcome(Scope.STREAM, code)


def answered(status: int = 200, grpc: int | None = 0) -> Outcome:
    return Outcome(Scope.ANSWERED, str(status) if grpc is None else f"{status}, grpc-status {grpc}")


def sent(size: int) -> Outcome:
    """The stream brought so much, and goes on."""
    return Outcome(Scope.NONE, f"{size} bytes of DATA")


OK = answered()
IGNORED = Outcome(Scope.NONE)
REPLIED = Outcome(Scope.NONE, "replied")

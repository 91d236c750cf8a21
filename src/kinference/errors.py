"""The one vocabulary of failure. Each border translates it once: `picker/convert.py` to gRPC status,
`gateway/errors.py` to HTTP status and the client's own dialect. Routing outcomes are values, not errors.
"""

from kinference.ids import Seconds


class KinferenceError(Exception):
    """Base of every failure with a place on the wire. The message is safe to show to a caller."""

    limit = ""
    """The key under `limits` that was reached, where one was."""


class InvalidArgument(KinferenceError):
    """The caller broke the contract: id 0, a malformed message, bytes that disagree with the declared length."""


class UnknownId(KinferenceError):
    """No live body or ticket has this id: never issued, expired, or already released."""


class BodyConsumed(KinferenceError):
    """An earlier Pick consumed this body."""


class BudgetExceeded(KinferenceError):
    """A body, a chunk or the whole server went over its byte budget."""

    def __init__(self, message: str, limit: str = "") -> None:
        self.limit = limit
        super().__init__(message)


class IdleTimeout(KinferenceError):
    """A push sent nothing for longer than the inter-chunk budget."""

    limit = "push_idle_timeout"


class Draining(KinferenceError):
    """The server is shutting down and takes nothing new."""


class ClientGone(KinferenceError):
    """The peer reset its stream or closed its connection."""


class PickerUnreachable(KinferenceError):
    """The picker is another process, and could not be asked: it is gone, silent, or does not know us."""


class UpstreamUnreachable(KinferenceError):
    """No connection to the destination, or it closed before the first byte of an answer: nothing was served."""


class NoConnectionLeft(UpstreamUnreachable):
    """This process or machine can open no further connection, which is no fault of the destination's."""


class UpstreamTimeout(KinferenceError):
    """The destination accepted the request and then stayed silent longer than it may."""


class UpstreamCut(KinferenceError):
    """The destination's answer broke off before its end, or was not HTTP."""


class ConfigError(KinferenceError):
    """A configuration that cannot be used: where (`path`, `line`), what is wrong, and the fix."""

    def __init__(self, path: str, problem: str, fix: str = "", line: int | None = None) -> None:
        self.path, self.problem, self.fix, self.line = path, problem, fix, line
        where = f"line {line}: {path}" if line is not None else path
        super().__init__(f"{where}: {problem}" + (f"; {fix}" if fix else ""))


class RetryLater(KinferenceError):
    """Refused for now: over a limit or out of capacity; `retry_after` says when to come back."""

    def __init__(self, message: str, retry_after: Seconds | None = None, limit: str = "") -> None:
        self.retry_after, self.limit = retry_after, limit
        super().__init__(message)

"""What every HTTP server carrier takes from a client before any handler sees it."""

from dataclasses import dataclass

from kinference.ids import Seconds


@dataclass(frozen=True, slots=True)
class HttpServerOptions:
    """Limits of one listening port."""

    field_bytes_max: int = 64 * 1024
    """Longest request line and longest header field; our own carrier holds the whole head to it."""
    fields_max: int = 128
    keepalive: Seconds = 75.0
    """How long a connection may sit without a complete request head."""
    head_timeout: Seconds = 20.0
    """How long a head may take from its first byte to its last; our own carrier only."""
    connections_max: int = 65_536
    """Connections beyond are answered 503 and closed; our own carrier only."""
    backlog: int = 1024

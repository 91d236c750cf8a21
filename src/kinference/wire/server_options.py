"""What every HTTP server carrier takes from a client before any handler sees it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kinference.ids import Seconds
from kinference.wire.connections import Tally
from kinference.wire.http2.guard import RATES, Nuisance, Rate
from kinference.wire.untaken import Untaken


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
    connections_max: int = 16_384
    """Connections beyond are answered 503 and closed; our own carrier only."""
    connections_per_peer_max: int = 4_096
    """The same for those of one peer."""
    streams_max: int = 1_024
    """On one connection of HTTP/2 at once."""
    rates: Mapping[Nuisance, Rate] = field(default_factory=lambda: RATES)
    """How often a peer may be a nuisance on a connection of HTTP/2."""
    account: Untaken = field(default_factory=Untaken, compare=False)
    """Where the bytes that wait for handlers are counted over all connections; our own carrier only."""
    tally: Tally = field(default_factory=Tally, compare=False)
    """Where its connections are counted; our own carrier only."""
    backlog: int = 1024

"""The API of a Kubernetes cluster, as a pod or a proxy reaches it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kinference.ports import Headers, UpstreamRequest, UpstreamTimeouts

_HEADERS: Final[Headers] = (
    (b"accept", b"application/json"),
    (b"accept-encoding", b"identity"),
    (b"user-agent", b"kinference"),
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where it is. The token is read each time, since the kubelet renews it; None: a proxy brings its own."""

    origin: str
    token_file: Path | None

    def get(self, target: str, timeouts: UpstreamTimeouts) -> UpstreamRequest:
        """A request for what is there. Raises OSError or ValueError where there is no token."""
        headers: Headers = _HEADERS
        if self.token_file is not None:
            token = self.token_file.read_text("ascii").strip()
            headers = ((b"authorization", b"Bearer " + token.encode()), *headers)
        return UpstreamRequest("GET", self.origin, target, headers, timeouts=timeouts)

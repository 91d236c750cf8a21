"""An API of Kubernetes that answers as a test has it, without a socket."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from kinference.errors import KinferenceError
from kinference.fleet.discovery.kubernetes.api import KubernetesApi
from kinference.ports import Headers, Upstream, UpstreamAnswer, UpstreamRequest
from kinference.wire.cluster import Cluster


@dataclass
class Reply(UpstreamAnswer):
    """One answer, in chunks; an error among them breaks it off."""

    chunks_: Sequence[bytes | KinferenceError] = ()
    status: int = 200
    headers: Headers = ()
    is_ready = False
    is_closed: bool = False

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks_:
            if isinstance(chunk, KinferenceError):
                raise chunk
            yield chunk

    async def close(self) -> None:
        self.is_closed = True


@dataclass
class FakeApi(Upstream):
    """Gives its replies in order."""

    replies: list[Reply | KinferenceError]
    asked: list[UpstreamRequest] = field(default_factory=list)

    async def send(self, request: UpstreamRequest) -> Reply:
        self.asked.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, KinferenceError):
            raise reply
        return reply

    @property
    def paths(self) -> list[str]:
        return [urlsplit(one.target).path for one in self.asked]

    def query(self, place: int) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.asked[place].target).query).items()}


def api_of(upstream: Upstream, token_file: Path | None = None) -> KubernetesApi:
    return KubernetesApi(upstream, Cluster("https://10.0.0.1:443", token_file))

"""The network as a test wants it."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from kinference.errors import KinferenceError
from kinference.ports import Headers, Upstream, UpstreamAnswer, UpstreamRequest


@dataclass
class Answer(UpstreamAnswer):
    """One answer of the outside."""

    is_ready = False

    status: int = 200
    content: bytes = b"{}"
    headers: Headers = ()

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.content

    async def close(self) -> None: ...


@dataclass
class Outside(Upstream):
    """Stands in for the network: answers in order, the last one for ever, and keeps what it was asked."""

    answers: Sequence[Answer | KinferenceError] = (Answer(200),)
    asked: list[UpstreamRequest] = field(default_factory=list)

    async def send(self, request: UpstreamRequest) -> Answer:
        self.asked.append(request)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, KinferenceError):
            raise answer
        return answer

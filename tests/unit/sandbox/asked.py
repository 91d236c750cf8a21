"""One request as a handler sees it, and what it answered."""

from collections.abc import AsyncIterator, Sequence

from kinference.ports import Headers


class Asked:
    """Stands in for a carrier."""

    def __init__(
        self, method: str, path: str, chunks: Sequence[bytes] = (), headers: Headers = (), query: str = ""
    ) -> None:
        self.method, self.path, self.query, self.headers = method, path, query, headers
        self.peer, self.accepted_at = "test", 0.0
        self.peer_names: Sequence[str] = ()
        self.status, self.answered, self.sent = 0, dict[bytes, bytes](), b""
        self.is_finished = self.is_aborted = False
        self._chunks = chunks

    def arrived(self) -> bytes | None:
        return None

    async def body(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk

    async def start(self, status: int, headers: Headers) -> None:
        self.status, self.answered = status, dict(headers)

    def send(self, chunk: bytes) -> bool:
        self.sent += chunk
        return True

    async def drained(self) -> None: ...

    async def write(self, chunk: bytes) -> None:
        self.send(chunk)

    async def finish(self) -> None:
        self.is_finished = True

    def abort(self) -> None:
        self.is_aborted = True

"""One request to the admin port, without a carrier."""

from collections.abc import AsyncIterator, Sequence

from kinference.ports import Headers

JSON: Headers = ((b"content-type", b"application/json; charset=utf-8"),)


class AskedExchange:
    """Stands in for a carrier: holds one request, keeps the answer."""

    def __init__(self, method: str, path: str, content: bytes, headers: Headers) -> None:
        self.method = method
        self.path, _, self.query = path.partition("?")
        self.headers = headers
        self.peer, self.accepted_at = "127.0.0.1:5", 0.0
        self.peer_names: Sequence[str] = ()
        self.status, self.answer_headers, self.sent = 0, dict[bytes, bytes](), b""
        self._content = content

    def arrived(self) -> bytes | None:
        return None

    async def body(self) -> AsyncIterator[bytes]:
        yield self._content

    async def start(self, status: int, headers: Headers) -> None:
        self.status, self.answer_headers = status, dict(headers)

    def send(self, chunk: bytes) -> bool:
        self.sent += chunk
        return True

    async def drained(self) -> None: ...

    async def write(self, chunk: bytes) -> None:
        self.send(chunk)

    async def finish(self) -> None: ...

    def abort(self) -> None: ...

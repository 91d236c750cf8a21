"""The client's body on its way in: passed on as it arrives, counted, and held for a second attempt."""

from collections.abc import AsyncIterator, Iterator

from kinference.errors import BudgetExceeded


class HeldBody:
    """A request body. Held because only the picker's own copy is patched, and a retry must start from the original."""

    def __init__(self, *, bytes_max: int, piece_bytes_max: int, declared: int | None) -> None:
        self._bytes_max, self._piece_bytes_max = bytes_max, piece_bytes_max
        self.declared = declared
        self._held = bytearray()
        self.is_over = False
        """Whether it went over its own limit."""

    def __len__(self) -> int:
        return len(self._held)

    async def arriving(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Pass on what comes in. Raises BudgetExceeded at the limit, at once when the declared length is over it."""
        self._check(self.declared or 0)
        async for chunk in chunks:
            self._check(len(self._held) + len(chunk))
            self._held += chunk
            for piece in self._cut(chunk):
                yield piece

    async def again(self) -> AsyncIterator[bytes]:
        """The whole body once more."""
        for piece in self._cut(bytes(self._held)):
            yield piece

    def _check(self, total: int) -> None:
        if total > self._bytes_max:
            self.is_over = True
            raise BudgetExceeded(f"request body over the limit of {self._bytes_max} bytes")

    def _cut(self, chunk: bytes) -> Iterator[bytes]:
        if len(chunk) <= self._piece_bytes_max:
            yield chunk
            return
        for start in range(0, len(chunk), self._piece_bytes_max):
            yield chunk[start : start + self._piece_bytes_max]

"""Prompt cache marks, of which Claude takes so many in one request, on whatever host, and OpenAI's newer models too."""

from typing import Any, Final

from msgspec.structs import replace

from kinference.shapes.ir import Request, ToolResult

MARKS_MAX: Final = 4


def last_marks(request: Request) -> tuple[Request, int]:
    """The request with its last marks alone, in the order of tools, system and conversation, and how many it had."""
    counting = _Marks(0)
    counting.of_request(request)
    had = counting.seen
    return (request, had) if had <= MARKS_MAX else (_Marks(had - MARKS_MAX).of_request(request), had)


def without_marks(request: Request) -> Request:
    """The request without any."""
    return _Marks(None).of_request(request)


class _Marks:
    """Takes the first so many marks off what it is shown, or all of them."""

    def __init__(self, off: int | None) -> None:
        self._off = off
        self.seen = 0

    def of_request(self, request: Request) -> Request:
        """All of one request."""
        tools, system = self._all(request.tools), self._all(request.system)
        turns = tuple(replace(turn, blocks=self._all(turn.blocks)) for turn in request.turns)
        return replace(request, tools=tools, system=system, turns=turns)

    def _all(self, parts: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(map(self._part, parts))

    def _part(self, part: Any) -> Any:  # noqa: ANN401 - a tool or a block of any kind
        if isinstance(part, ToolResult) and part.content:
            part = replace(part, content=self._all(part.content))
        if getattr(part, "cache", None) is None:
            return part
        self.seen += 1
        return replace(part, cache=None) if self._off is None or self.seen <= self._off else part

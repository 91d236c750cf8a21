"""Those that wait and that nobody can serve just now: what is found of one holds for those like it."""

from kinference.core.request import Request

Kind = tuple[object, ...]


class Unserved:
    """Of one look at a line, so that a crowd of them costs one weighing and not one each."""

    def __init__(self) -> None:
        self._least: dict[Kind, tuple[int, int]] = {}

    def note(self, request: Request) -> None:
        """Nobody can serve this one."""
        self._least.setdefault(_kind(request), _size(request))

    def covers(self, request: Request) -> bool:
        """Whether one that asks for no more than this one was found before, and so this one need not be weighed."""
        if not self._least:
            return False
        least = self._least.get(_kind(request))
        if least is None:
            return False
        prompt_bytes, output_tokens = _size(request)
        return prompt_bytes >= least[0] and output_tokens >= least[1]


def _kind(request: Request) -> Kind:
    """All by which destinations are ruled out, but for sizes."""
    return (
        request.model,
        request.tenant,
        request.pool,
        request.api,
        request.needs,
        request.reaches,
        request.failed,
        request.attempts_left,
    )


def _size(request: Request) -> tuple[int, int]:
    return request.prompt_bytes, request.output_tokens or 0

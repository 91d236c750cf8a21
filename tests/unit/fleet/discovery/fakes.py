"""Sources as a test wants them."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from kinference.fleet.discovery.place import Place
from kinference.fleet.discovery.source import SourceFailed


class Stopped(BaseException):
    """Ends a follower that would go on for ever."""


@dataclass
class ScriptedSource:
    """Tells, or fails, as the script has it; then it waits no more and ends its follower."""

    script: list[Sequence[Place] | Exception]
    name: str = "a script"
    calls: int = 0

    async def sets(self) -> AsyncGenerator[Sequence[Place], None]:
        self.calls += 1
        while self.script:
            step = self.script.pop(0)
            if isinstance(step, Exception):
                raise step
            yield step
        raise Stopped


@dataclass
class Waits:
    """A sleep that takes no time, and keeps what it was asked for."""

    asked: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)


AWAY = SourceFailed("it is away")

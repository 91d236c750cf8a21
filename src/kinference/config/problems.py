"""Problems are collected and told together: who edits a file wants all of them at once."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from kinference.errors import ConfigError


class InvalidConfig(ConfigError):
    """One configuration's problems, at least one; its text has one line for each."""

    def __init__(self, problems: Sequence[ConfigError]) -> None:
        first = problems[0]
        super().__init__(first.path, first.problem, first.fix, first.line)
        self.problems = tuple(problems)

    def lines(self, file: Path) -> Iterator[str]:
        """One for each problem, led by the file that has it."""
        for problem in self.problems:
            yield str(problem) if problem.path == str(file) else f"{file}: {problem}"

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)

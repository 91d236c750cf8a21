"""Problems are collected and told together: who edits a file wants all of them at once."""

from collections.abc import Sequence

from kinference.errors import ConfigError


class InvalidConfig(ConfigError):
    """One configuration's problems, at least one; its text has one line for each."""

    def __init__(self, problems: Sequence[ConfigError]) -> None:
        first = problems[0]
        super().__init__(first.path, first.problem, first.fix, first.line)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)

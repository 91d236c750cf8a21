"""How much Gemini's models can be asked to think, and what they take of sampling: it differs by generation and size."""

import re
from collections.abc import Mapping
from typing import Final

from kinference.shapes.ir import Effort, Json, Thinking

_VERSION: Final = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_BY_LEVEL_SINCE: Final = (3, 0)
_NEWEST: Final = (99, 0)
_UNPENALISED_SINCE: Final = (3, 5)
_PRO: Final = "pro"
_MEDIUM_PRO_SINCE: Final = (3, 1)
_LOW_FLASH_SINCE: Final = (3, 7)
"""These think a little at least, as the larger ones always did."""
_LEVELS: Final[Mapping[Effort, str]] = {
    Effort.NONE: "MINIMAL",
    Effort.MINIMAL: "MINIMAL",
    Effort.LOW: "LOW",
    Effort.MEDIUM: "MEDIUM",
    Effort.HIGH: "HIGH",
    Effort.XHIGH: "HIGH",
    Effort.MAX: "HIGH",
}
_BUDGETS: Final = (
    # size, least, most, whether it can be told not to think
    ("flash-lite", 512, 24_576, True),
    ("flash", 1, 24_576, True),
    ("pro", 128, 32_768, False),
)
_BEYOND: Final = (Effort.XHIGH, Effort.MAX)


def generation(model: str) -> tuple[int, int]:
    """The version in a model's name; a name that tells none is of the newest."""
    found = _VERSION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else _NEWEST


def refuses_penalties(model: str) -> bool:
    """Whether a penalty is an error."""
    return _UNPENALISED_SINCE <= generation(model) < _NEWEST


def takes_details(model: str) -> bool:
    """Whether it can be told how closely to look at each image."""
    return generation(model) >= _BY_LEVEL_SINCE


def misses(model: str, thinking: Thinking) -> str:
    """What a model does instead of what it was asked for, where that is another thing; "" where it does just that."""
    if thinking.effort in _BEYOND and generation(model) >= _BY_LEVEL_SINCE:
        return f"{thinking.effort.word}->{Effort.HIGH.word}"
    config = thinking_config(model, thinking)
    if thinking.effort is Effort.NONE and (config.get("thinkingLevel") == "LOW" or config.get("thinkingBudget")):
        return f"{Effort.NONE.word}->{Effort.LOW.word}"
    return ""


def thinking_config(model: str, thinking: Thinking) -> Json:
    """What to ask of a model: by level, or of an older one by tokens, as near as it goes."""
    config = {"thinkingLevel": _level(model, thinking.effort)}
    if generation(model) < _BY_LEVEL_SINCE:
        return _shown({"thinkingBudget": _budget(model, thinking)}, thinking)
    return _shown(config, thinking)


def _shown(config: Json, thinking: Thinking) -> Json:
    return config | ({"includeThoughts": True} if thinking.is_shown else {})


def _level(model: str, effort: Effort) -> str:
    level = _LEVELS[effort]
    if level == "MINIMAL" and (_PRO in model or _LOW_FLASH_SINCE <= generation(model) < _NEWEST):
        return "LOW"
    if _PRO in model and level == "MEDIUM" and generation(model) < _MEDIUM_PRO_SINCE:
        return "HIGH"
    return level


def _budget(model: str, thinking: Thinking) -> int:
    _, least, most, can_stop = next((row for row in _BUDGETS if row[0] in model), ("", 0, 24_576, True))
    if thinking.effort is Effort.NONE:
        return 0 if can_stop else least
    if thinking.effort is Effort.MINIMAL and thinking.budget is None:
        return least
    wanted = thinking.effort.budget if thinking.budget is None else thinking.budget
    return max(least, min(wanted, most))

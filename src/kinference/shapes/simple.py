"""Conversations as most are: words, calls of functions, and each call's result at once. Seen in one walk that they are,
they need not be looked through for each of the things that few have.
"""

from kinference.shapes.ir import ASSISTANT, USER, Block, Simple, Text, ToolCall, ToolResult, Turn
from kinference.shapes.tooling import ID_MAX, are_safe, are_safe_names


def simple(turns: tuple[Turn, ...]) -> Simple | None:
    """That they are simple, and whether user and assistant take turns; None where anything about them is unusual."""
    walk = _Walk()
    for turn in turns:
        if not walk.takes(turn):
            return None
    calls = walk.calls
    if not turns or walk.waits or len(set(calls)) != len(calls):
        return None
    return Simple(turns, walk.alternates) if are_safe(calls, ID_MAX) and are_safe_names(walk.names) else None


class _Walk:
    """What was seen so far."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.names: dict[str, None] = {}
        self.alternates = True
        self._answered = 0  # of the calls, in their order
        self._next = USER

    @property
    def waits(self) -> bool:
        """Whether it is the user's turn to give the rest of the results."""
        return self._next is ASSISTANT and self._answered < len(self.calls)

    def takes(self, turn: Turn) -> bool:
        """Whether a conversation that goes on so is still simple."""
        role = turn.role
        if turn.name or not turn.blocks:
            return False
        if role is not self._next:
            self.alternates = False
        if role is USER:
            self._next = ASSISTANT
            return self._is_users(turn)
        self._next = USER
        return role is ASSISTANT and self._answered == len(self.calls) and self._is_assistants(turn)

    def _is_users(self, turn: Turn) -> bool:
        """Results of the calls that wait for them, and then words."""
        has_words = False
        for block in turn.blocks:
            if type(block) is Text:
                has_words = True
                if block.cache is not None or not block.text or block.text.isspace():
                    return False
            elif type(block) is not ToolResult or has_words or not self._answers(block):
                return False
        return not has_words or self._answered == len(self.calls)

    def _answers(self, result: ToolResult) -> bool:
        at = self._answered
        if at == len(self.calls) or self.calls[at] != result.id or result.is_error or result.cache is not None:
            return False
        self._answered = at + 1
        return _are_words(result.content)

    def _is_assistants(self, turn: Turn) -> bool:
        """Words, and then calls."""
        before = len(self.calls)
        for block in turn.blocks:
            if type(block) is Text:
                if block.cache is not None or not block.text or block.text.isspace() or len(self.calls) > before:
                    return False
            elif type(block) is not ToolCall or block.is_free_form or block.cache is not None:
                return False
            else:
                self.calls.append(block.id)
                self.names[block.name] = None
        return True


def _are_words(blocks: tuple[Block, ...]) -> bool:
    return all(type(block) is Text and block.cache is None for block in blocks)

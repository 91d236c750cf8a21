"""Turns put into the order that Anthropic, Google and Bedrock ask for: user and assistant in turn, results first and
calls last.

Each turn's outcome depends on what came before it alone, so that a conversation that grows keeps its beginning.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from kinference.shapes.ir import (
    ASSISTANT,
    SYSTEM,
    USER,
    Audio,
    Block,
    File,
    Refusal,
    Request,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    is_simple,
    kinds_of,
)
from kinference.shapes.lost import Untranslatable
from kinference.shapes.scan import BadBody

_NOT_THE_ASSISTANTS: Final = frozenset({ToolResult, Audio, File})
_TEXT_ALONE: Final = {Text}
_NOTE: Final = "<operator-note>\n{}\n</operator-note>"
_NO_RESULT: Final = "no result was recorded"


def check_speakers(turns: Sequence[Turn]) -> None:
    """Calls are the assistant's, results are not, and what the assistant shows beside words and images no other API can
    be told. Raises BadBody.
    """
    if kinds_of(turns) == _TEXT_ALONE:
        return
    for turn in turns:
        is_assistant = turn.role is ASSISTANT
        for block in turn.blocks:
            kind = type(block)
            if kind is not Text and (kind in _NOT_THE_ASSISTANTS if is_assistant else kind is ToolCall):
                raise _misplaced(block)


def _misplaced(block: Block) -> BadBody:
    match block:
        case ToolCall():
            return BadBody(f"messages: tool call {block.id} is not in a turn of the assistant's")
        case ToolResult():
            return BadBody(f"messages: the result of tool call {block.id} is in a turn of the assistant's")
        case _:
            return Untranslatable("messages: media in a turn of the assistant's cannot go to another API")


def alternating(turns: Iterable[Turn], *, takes_system: bool = False) -> tuple[Turn, ...]:
    """The turns merged by speaker, without empty ones, and with every call answered. `takes_system`: what the operator
    says may be a turn of its own, right after one of the user's. Raises BadBody.
    """
    merged = tuple(turns)
    if not _are_in_order(merged):
        merged = tuple(_answered(_merged(_placed(merged) if takes_system else _noted(merged))))
    if not merged:
        raise BadBody("messages: no user message; this destination needs one")
    if merged[0].role is ASSISTANT:
        raise Untranslatable("messages: the first is the assistant's; this destination needs the user's first")
    return merged


def alternated(request: Request, *, takes_system: bool = False) -> tuple[Turn, ...]:
    """As `alternating`, of a request's turns."""
    seen = request.simple
    if seen is not None and seen.alternates and is_simple(request):
        return request.turns
    return alternating(request.turns, takes_system=takes_system)


def answered(turns: Iterable[Turn]) -> Iterator[Turn]:
    """The turns as they came, with every call answered before whatever comes after it."""
    open_calls: dict[str, None] = {}
    for turn in turns:
        results = [block for block in turn.blocks if isinstance(block, ToolResult)]
        if turn.role is ASSISTANT:
            if open_calls:
                yield Turn(USER, tuple(_results_first((), open_calls)))
            yield turn
            open_calls = dict.fromkeys(block.id for block in turn.blocks if isinstance(block, ToolCall))
        elif turn.role is USER and len(results) == len(turn.blocks) and _are_of(results, open_calls):
            yield turn  # others may follow, each in a turn of its own
            for result in results:
                del open_calls[result.id]
        elif turn.role is USER:
            yield replace(turn, blocks=tuple(_results_first(turn.blocks, open_calls)))
            open_calls = {}
        else:
            yield turn


def _are_of(results: Sequence[ToolResult], calls: dict[str, None]) -> bool:
    """Whether they are results of different calls among these."""
    ids = {result.id for result in results}
    return len(ids) == len(results) and ids <= calls.keys()


def _are_in_order(turns: Sequence[Turn]) -> bool:
    """Whether there is nothing to merge, nothing empty and nothing to answer, as in most conversations."""
    role = USER
    calls: list[str] = []
    for turn in turns:
        ids = _in_order(turn) if turn.role is role else None
        if ids is None:
            return False
        if role is USER:
            if ids != calls:
                return False
            role = ASSISTANT
        else:
            if len(set(ids)) != len(ids):
                return False
            role, calls = USER, ids
    return bool(turns)


def _in_order(turn: Turn) -> list[str] | None:
    """The ids of the assistant's calls, or of the user's results; None of a turn that is empty, says nothing, or has
    words after calls or results after words.
    """
    blocks = turn.blocks
    if len(blocks) == 1:  # as most have
        only = blocks[0]
        if type(only) is Text:
            return None if not only.text or only.text.isspace() else []
        return [only.id] if type(only) is ToolCall or type(only) is ToolResult else []
    ids: list[str] = []
    is_leading = True
    for block in blocks:
        if type(block) is Text:
            is_leading = False
            if not block.text or block.text.isspace() or (ids and turn.role is ASSISTANT):
                return None
        elif type(block) is ToolCall:
            ids.append(block.id)
        elif type(block) is not ToolResult:
            is_leading = False
        elif is_leading:
            ids.append(block.id)
        else:
            return None
    return ids if blocks else None


def _placed(turns: Iterable[Turn]) -> Iterator[Turn]:
    """The turns with what the operator says where alone it may stand for itself: all of it in one turn after the user's
    and before the assistant's. Where the user says nothing there, it stays where it was.
    """
    late: list[Text] = []
    is_users = False
    for turn in turns:
        if turn.role is SYSTEM:
            late += (block for block in _spoken(turn.blocks) if isinstance(block, Text))
            if others := tuple(block for block in turn.blocks if not isinstance(block, Text)):
                yield Turn(USER, others)
        elif turn.role is USER:
            is_users = is_users or bool(_spoken(turn.blocks))
            yield turn
        elif _spoken(turn.blocks):
            yield from _of_operator(late, is_apart=is_users)
            late, is_users = [], False
            yield turn
    yield from _of_operator(late, is_apart=is_users)


def _of_operator(said: Sequence[Text], *, is_apart: bool) -> Iterator[Turn]:
    if said:
        yield Turn(SYSTEM, tuple(said)) if is_apart else Turn(USER, tuple(_notes(said)))


def _merged(turns: Iterable[Turn]) -> Iterator[Turn]:
    role, blocks = USER, list[Block]()
    for turn in turns:
        said = _spoken(turn.blocks)
        if not said:
            continue
        speaker = turn.role
        if speaker is not role:
            if blocks:
                yield Turn(role, tuple(blocks))
            role, blocks = speaker, []
        blocks += said
    if blocks:
        yield Turn(role, tuple(blocks))


def _noted(turns: Iterable[Turn]) -> Iterator[Turn]:
    """The turns without any of the operator's."""
    return (Turn(USER, tuple(_notes(turn.blocks))) if turn.role is SYSTEM else turn for turn in turns)


def _notes(blocks: Iterable[Block]) -> Iterator[Block]:
    """What the operator says within a conversation stays where it was said, in words that mark it as theirs."""
    for block in _spoken(blocks):
        yield replace(block, text=_NOTE.format(block.text)) if isinstance(block, Text) else block


def _spoken(blocks: Iterable[Block]) -> list[Block]:
    return [block for block in blocks if type(block) is not Text or (block.text and not block.text.isspace())]


def _answered(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Every call gets the one result that follows it; a result of no call becomes what the user says."""
    open_calls: dict[str, None] = {}
    for turn in turns:
        if turn.role is ASSISTANT:
            yield _calls_last(turn)
            open_calls = dict.fromkeys([block.id for block in turn.blocks if type(block) is ToolCall])
        elif open_calls or any(isinstance(block, ToolResult) for block in turn.blocks):
            yield Turn(USER, tuple(_results_first(turn.blocks, open_calls)))
            open_calls = {}
        else:
            yield turn


def _calls_last(turn: Turn) -> Turn:
    """The turn with all that was said before its first call: Bedrock misses the results of calls that words follow."""
    blocks = turn.blocks
    first = next((at for at, block in enumerate(blocks) if type(block) is ToolCall), len(blocks))
    late = [block for block in blocks[first:] if isinstance(block, Text | Refusal)]
    if not late:
        return turn
    rest = [block for block in blocks[first:] if not isinstance(block, Text | Refusal)]
    return replace(turn, blocks=(*blocks[:first], *late, *rest))


def _results_first(blocks: Sequence[Block], calls: dict[str, None]) -> Iterator[Block]:
    results: dict[str, ToolResult] = {}
    others: list[Block] = []
    for block in blocks:
        if not isinstance(block, ToolResult):
            others.append(block)
        elif block.id not in calls:
            others += (Text(f"[tool result {block.id}]"), *block.content)
        else:
            results.setdefault(block.id, block)
    for call in calls:
        yield results.get(call) or ToolResult(call, (Text(_NO_RESULT),), is_error=True)
    yield from others


def orphans(turns: Sequence[Turn]) -> Iterator[str]:
    """The ids that have to be mended: calls without a result, though the conversation went on, results without a call,
    and second results.
    """
    open_calls: dict[str, int] = {}
    for turn in turns:
        has_results = False
        calls: dict[str, int] = {}
        for block in turn.blocks:
            if type(block) is ToolCall:
                calls[block.id] = calls.get(block.id, 0) + 1
            elif type(block) is ToolResult:
                has_results = True
                if left := open_calls.get(block.id):
                    open_calls[block.id] = left - 1
                else:
                    yield block.id
        if turn.role is ASSISTANT or (turn.role is USER and not has_results):
            for call, left in open_calls.items():
                yield from [call] * left
            open_calls = calls

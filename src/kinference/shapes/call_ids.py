"""Ids that name one call each. Some servers count their calls anew in every turn, or give all of a turn the same id,
and clients send them back so; Anthropic and Bedrock refuse an id that comes twice, and a result would go to the wrong
call.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from kinference.shapes.ir import Block, ToolCall, ToolResult, Turn, blocks_of


def distinct(turns: Sequence[Turn]) -> Sequence[Turn]:
    """The turns with another id for every call whose id was taken before, and for its results; the very same where each
    has its own.
    """
    ids = [block.id for block in blocks_of(turns) if type(block) is ToolCall]
    if len(set(ids)) == len(ids):
        return turns
    naming = _Naming()
    return tuple([replace(turn, blocks=naming.blocks(turn)) for turn in turns])


class _Naming:
    """What an id is called depends on what came before alone, so that a conversation that grows keeps its beginning."""

    def __init__(self) -> None:
        self._uses: dict[str, int] = {}
        self._open: dict[str, list[str]] = {}  # by the id as it was given: new names that wait for their results

    def blocks(self, turn: Turn) -> tuple[Block, ...]:
        if any(type(block) is ToolCall for block in turn.blocks):
            self._open = {}
        return tuple(map(self._block, turn.blocks))

    def _block(self, block: Block) -> Block:
        if type(block) is ToolCall:
            uses = self._uses[block.id] = self._uses.get(block.id, 0) + 1
            name = block.id if uses == 1 else f"{block.id}.{uses}"  # no API's own alphabet: it will be made one's own
            self._open.setdefault(block.id, []).append(name)
            return block if uses == 1 else replace(block, id=name)
        if type(block) is ToolResult and (waiting := self._open.get(block.id)):
            name = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            return block if name == block.id else replace(block, id=name)
        return block

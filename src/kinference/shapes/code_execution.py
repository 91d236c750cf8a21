"""Code that a provider runs itself: how it is asked for, comes in answers and stands in the history, in every API's
form.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from kinference.shapes.ir import Block, Executed, Json, ServerCall, Text, Turn, Unread
from kinference.shapes.json_text import dumps
from kinference.shapes.seals import MARK

_HALVES: Final = frozenset([Executed, ServerCall])
RESPONSES_TOOL: Final = "code_interpreter"
RESPONSES_ITEM: Final = "code_interpreter_call"
RESPONSES_OUTPUTS: Final = "code_interpreter_call.outputs"
MESSAGES_TYPE: Final = "code_execution_20250825"
MESSAGES_NAME: Final = "code_execution"
_MESSAGES_NAMES: Final = (MESSAGES_NAME, "bash_code_execution", "text_editor_code_execution")
_BAD: Final = re.compile(r"[^a-zA-Z0-9_]")
_RESULT: Final = "_tool_result"
_CODES: Final = ("code", "command")
_OK: Final = "OUTCOME_OK"
_FAILED: Final = "OUTCOME_FAILED"


# --- asked for --------------------------------------------------------------------------------------


def is_messages_tool(tool: Mapping[str, Any]) -> bool:
    """Whether a tool of Messages runs code, whatever its version."""
    kind = tool.get("type")
    return isinstance(kind, str) and kind.startswith(f"{MESSAGES_NAME}_")


def is_responses_tool(tool: object) -> bool:
    """Whether a tool of Responses runs code."""
    return isinstance(tool, dict) and tool.get("type") == RESPONSES_TOOL


# --- Messages ---------------------------------------------------------------------------------------


def of_messages(block: Json) -> Executed | None:
    """Of a block that has code run, or has what came of it; None of any other."""
    kind = _text(block, "type")
    if kind == "server_tool_use" and block.get("name") in _MESSAGES_NAMES:
        given = _object(block.get("input"))
        code = next((given[name] for name in _CODES if isinstance(given.get(name), str)), None)
        return Executed(_text(block, "id"), (dumps(given).decode() if given else "") if code is None else code)
    if kind.removesuffix(_RESULT) in _MESSAGES_NAMES and kind.endswith(_RESULT):
        output, has_failed = _outcome(_object(block.get("content")))
        return Executed(_text(block, "tool_use_id"), output=output, has_failed=has_failed)
    return None


def held_of(block: Json) -> Iterator[Unread]:
    """What a result has that its provider holds: files, and output that only it can read."""
    content = _object(block.get("content"))
    files = content.get("content")
    if isinstance(files, list) and files:
        yield Unread("code_execution_output")
    if content.get("encrypted_stdout"):
        yield Unread("encrypted_stdout")


def _outcome(content: Json) -> tuple[str, bool]:
    error = _text(content, "error_code")
    said = [_text(content, name) for name in ("stdout", "stderr", "content")]
    return "\n".join(text for text in (*said, error) if text), bool(error or content.get("return_code"))


def to_messages(ran: Executed, place: str) -> Iterator[Json]:
    """The blocks of Messages: the call, and what came of it. `place` tells it from every other."""
    call = f"srvtoolu_{_BAD.sub('_', place)}"
    result = {
        "type": "code_execution_result",
        "stdout": "" if ran.has_failed else ran.output,
        "stderr": ran.output if ran.has_failed else "",
        "return_code": int(ran.has_failed),
        "content": [],
    }
    yield {"type": "server_tool_use", "id": call, "name": MESSAGES_NAME, "input": {"code": ran.code}}
    yield {"type": "code_execution_tool_result", "tool_use_id": call, "content": result}


# --- Responses --------------------------------------------------------------------------------------


def of_responses(item: Json) -> Executed:
    """Of an item that had code run."""
    outputs = item.get("outputs")
    logs = (_text(one, "logs") for one in (outputs if isinstance(outputs, list) else ()) if isinstance(one, dict))
    return Executed(_text(item, "id"), _text(item, "code"), "".join(logs), item.get("status") == "failed")


def images_of(item: Json) -> Iterator[str]:
    """Where the images are that code made."""
    outputs = item.get("outputs")
    for one in outputs if isinstance(outputs, list) else ():
        if isinstance(one, dict) and one.get("type") == "image":
            yield _text(one, "url")


def to_responses(item_id: str, ran: Executed, status: str = "") -> Json:
    """An item that had code run. Its container is our mark: only OpenAI's own would mean anything to it."""
    outputs = [{"type": "logs", "logs": ran.output}] if ran.output and not status else []
    return {
        "id": item_id,
        "type": RESPONSES_ITEM,
        "status": status or ("failed" if ran.has_failed else "completed"),
        "code": ran.code,
        "container_id": MARK,
        "outputs": outputs,
    }


# --- Gemini -----------------------------------------------------------------------------------------


def of_gemini(part: Json) -> Executed | None:
    """Of a part that has code, or what came of it; None of any other."""
    if code := _object(part.get("executableCode")):
        return Executed(_text(code, "id"), _text(code, "code"))
    if result := _object(part.get("codeExecutionResult")):
        return Executed(_text(result, "id"), output=_text(result, "output"), has_failed=result.get("outcome") != _OK)
    return None


def to_gemini(ran: Executed) -> Iterator[Json]:
    """The parts of Gemini: the code, and what came of it."""
    yield {"executableCode": {"language": "PYTHON", "code": ran.code}}
    yield {"codeExecutionResult": {"outcome": _FAILED if ran.has_failed else _OK, "output": ran.output}}


# --- of all -----------------------------------------------------------------------------------------


def joined(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks with each run and each call of a server as one, where its result comes."""
    given = tuple(blocks)
    if _HALVES.isdisjoint(map(type, given)):
        yield from given
        return
    joiner = Joiner()
    for block in given:
        if type(block) is Executed or type(block) is ServerCall:
            yield from joiner.feed(block)
        else:
            yield block
    yield from joiner.rest()


class Joiner:
    """Puts the two halves of a run or of a call together, which some APIs tell apart: by its id, or in order where it
    has none.
    """

    def __init__(self) -> None:
        self._open: dict[str, Executed | ServerCall] = {}

    def feed(self, block: Executed | ServerCall) -> Iterator[Executed | ServerCall]:
        """What is whole now."""
        begins = block.code if isinstance(block, Executed) else block.name
        if begins and not block.output and not block.has_failed:
            yield from self._pop(block.id)
            self._open[block.id] = block
        elif (begun := self._open.pop(block.id, None)) is not None:
            yield replace(begun, output=block.output, has_failed=block.has_failed)
        else:
            yield block

    def rest(self) -> Iterator[Executed | ServerCall]:
        """Those of which nothing came."""
        yield from self._open.values()
        self._open.clear()

    def _pop(self, begun_id: str) -> Iterator[Executed | ServerCall]:
        if (begun := self._open.pop(begun_id, None)) is not None:
            yield begun


def in_words(turns: Iterable[Turn]) -> Iterator[Turn]:
    """The turns with earlier runs as text: only their own provider could take them as they were."""
    for turn in turns:
        is_told = any(type(block) is Executed for block in turn.blocks)
        yield replace(turn, blocks=tuple(_told(turn.blocks))) if is_told else turn


def _told(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        if type(block) is not Executed:
            yield block
            continue
        if block.code:
            yield Text(f"[ran this code]\n{block.code}")
        if block.output or not block.code:
            yield Text(f"[its {'error' if block.has_failed else 'output'}]\n{block.output}")


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _text(members: Json, name: str) -> str:
    value = members.get(name)
    return value if isinstance(value, str) else ""

"""Tools of Messages that the client runs and whose form Claude alone knows by heart: a shell, an editor of files and a
memory. To any other model each is a function of that form, so that its calls are the client's own.
"""

from collections.abc import Mapping
from typing import Any, Final

from kinference.shapes.ir import Json

_TEXT: Final[Json] = {"type": "string"}
_NUMBER: Final[Json] = {"type": "integer"}
_LINES: Final[Json] = {
    "type": "array",
    "items": _NUMBER,
    "description": "For `view`: the first line and the last one, counted from 1; -1 is the end.",
}
_SHELL: Final[Json] = {
    "type": "object",
    "properties": {
        "command": _TEXT | {"description": "What to run. Needed unless the shell is started anew."},
        "restart": {"type": "boolean", "description": "Start the shell anew."},
    },
}
_IN_EVERY_EDITOR: Final = ("view", "create", "str_replace", "insert")
_FILES: Final[Json] = {
    "path": _TEXT,
    "view_range": _LINES,
    "file_text": _TEXT | {"description": "For `create`: the whole file."},
    "old_str": _TEXT | {"description": "For `str_replace`: the text to replace, which has to be there once."},
    "insert_line": _NUMBER | {"description": "For `insert`: the line after which to insert; 0 is the beginning."},
}
_REPLACES: Final[Json] = {"new_str": _TEXT | {"description": "For `str_replace`: what takes its place."}}
_INSERTS: Final[Json] = {"insert_text": _TEXT | {"description": "For `insert`: the text to insert."}}
_ALSO_INSERTS: Final[Json] = {
    "new_str": _TEXT | {"description": "For `str_replace`: what takes its place. For `insert`: the text to insert."}
}
_RENAMES: Final[Json] = {
    "old_path": _TEXT | {"description": "For `rename`."},
    "new_path": _TEXT | {"description": "For `rename`."},
}


def _commands(names: tuple[str, ...], members: Json, *required: str) -> Json:
    """The form of a tool that does several things."""
    command = {"command": {"type": "string", "enum": list(names)}}
    return {"type": "object", "properties": command | members, "required": ["command", *required]}


_FORMS: Final[Mapping[str, tuple[str, Json]]] = {
    "bash_": ("Runs a command in a shell that keeps its state from call to call.", _SHELL),
    "text_editor_20250124": (
        "Shows and edits files. `view` of a directory lists it; `undo_edit` takes back the last edit of a file.",
        _commands((*_IN_EVERY_EDITOR, "undo_edit"), _FILES | _ALSO_INSERTS, "path"),
    ),
    "text_editor_": (
        "Shows and edits files. `view` of a directory lists it.",
        _commands(_IN_EVERY_EDITOR, _FILES | _REPLACES | _INSERTS, "path"),
    ),
    "memory_": (
        "Keeps files under /memories, which outlive this conversation. View that directory before you begin a task.",
        _commands((*_IN_EVERY_EDITOR, "delete", "rename"), _FILES | _REPLACES | _INSERTS | _RENAMES),
    ),
}
"""By how their types begin, whatever their version; the first that fits."""


def form_of(tool: Mapping[str, Any]) -> tuple[str, Json] | None:
    """What such a tool of Messages does and takes; None of any other."""
    kind = tool.get("type")
    if not isinstance(kind, str):
        return None
    return next((form for beginning, form in _FORMS.items() if kind.startswith(beginning)), None)

"""An answer that is the bare one of some words, as Gemini gives with `text/x.enum`: asked of others as an object
with the word in it, and taken out of that again.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from kinference.shapes.answers import Finished, Piece, TextPiece
from kinference.shapes.ir import Format, FormatKind, Json
from kinference.shapes.json_text import as_object, list_of, string_of
from kinference.shapes.scan import BadBody

WORD_MAX: Final = 64 * 1024
"""Characters of a text that may be an object with a word: a longer one is none, and goes on as it comes."""
_MEMBER: Final = "choice"


def choice_of(schema: Json, where: str) -> Format:
    """The format of an answer by such a schema. Raises BadBody."""
    words = [string_of(word, f"{where}.enum") for word in list_of(schema.get("enum"), f"{where}.enum")]
    if not words:
        raise BadBody(f"{where}.enum: missing or empty; the answer is to be one of it")
    about = string_of(schema.get("description"), f"{where}.description")
    word: Json = {"type": "string", "enum": words} | ({"description": about} if about else {})
    members = {"type": "object", "properties": {_MEMBER: word}, "required": [_MEMBER], "additionalProperties": False}
    return Format(FormatKind.JSON_SCHEMA, name=_MEMBER, schema=members, strict=True, is_choice=True)


def chosen(text: str) -> str:
    """The word; the text itself where it is no object with one."""
    word = (as_object(text) or {}).get(_MEMBER)
    return word if isinstance(word, str) else text


class Chooser:
    """Takes the word out of a stream, where it comes when all of it has."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._chars = 0

    def pieces(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """The pieces with the word alone."""
        for piece in pieces:
            if isinstance(piece, TextPiece) and self._chars <= WORD_MAX:
                self._texts.append(piece.text)
                self._chars += len(piece.text)
                if self._chars > WORD_MAX:
                    yield TextPiece("".join(self._texts))
                    self._texts = []
                continue
            if isinstance(piece, Finished) and self._texts:
                yield TextPiece(chosen("".join(self._texts)))
                self._texts = []
            yield piece

import json
from typing import Any

import pytest

from kinference.shapes.answers import Counted, Finish, Finished, Started, TextPiece
from kinference.shapes.choices import Chooser, choice_of, chosen
from kinference.shapes.scan import BadBody
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import (
    CHAT,
    CONVERSE,
    GEMINI,
    MESSAGES,
    RESPONSES,
    Stream,
    answered,
    chunk,
    data,
    sent,
    warnings,
)

WORDS = {"type": "STRING", "enum": ["Brass", "Strings"], "description": "which family"}
CONFIG = {"responseMimeType": "text/x.enum", "responseSchema": WORDS, "maxOutputTokens": 99}
BODY = {"contents": [{"role": "user", "parts": [{"text": "cello?"}]}], "generationConfig": CONFIG}
MEMBERS = {"choice": {"type": "string", "enum": ["Brass", "Strings"], "description": "which family"}}


@pytest.mark.parametrize("destination", [CHAT, RESPONSES, MESSAGES, CONVERSE])
def test_a_word_is_asked_for_as_an_object_with_it(destination: Api) -> None:
    made = json.dumps(sent(BODY, GEMINI, destination, "gpt-5")).replace("\\", "").replace(" ", "")
    assert json.dumps(MEMBERS).replace(" ", "") in made
    assert warnings(BODY, GEMINI, destination, "gpt-5") == ""


def test_the_client_gets_the_bare_word() -> None:
    message = {"content": '{"choice": "Strings"}'}
    body = {"id": "c", "model": "up", "choices": [{"message": message, "finish_reason": "stop"}]}
    (candidate,) = answered(body, GEMINI, CHAT, generationConfig=CONFIG)["candidates"]
    assert candidate["content"]["parts"] == [{"text": "Strings"}]


def test_so_it_does_in_a_stream() -> None:
    stream = Stream(GEMINI, CHAT, generationConfig=CONFIG)
    stream.feed(data(chunk({"content": '{"choi'}), chunk({"content": 'ce":"Brass"}'}), chunk({}, "stop"), "[DONE]"))
    parts = [part for event in stream.end().events for part in event["candidates"][0]["content"].get("parts", [])]
    assert [part["text"] for part in parts if part.get("text")] == ["Brass"]


@pytest.mark.parametrize("text", ["I would rather not.", '{"choice":', '{"choice": 1}', ""])
def test_what_holds_no_word_is_left_as_it_is(text: str) -> None:
    assert chosen(text) == text


def test_a_word_comes_before_the_end_and_nothing_where_there_was_no_text() -> None:
    end, counted = Finished(Finish.STOP), Counted(Started().counts)
    pieces: list[Any] = [Started(), TextPiece('{"choice":"a"}'), counted, end]
    assert [*Chooser().pieces(pieces)] == [Started(), counted, TextPiece("a"), end]
    assert [*Chooser().pieces([end])] == [end]


def test_what_is_too_long_for_a_word_goes_on_as_it_comes_and_is_not_kept() -> None:
    chooser, text = Chooser(), "x" * 1000
    given = [
        "".join(piece.text for piece in chooser.pieces([TextPiece(text)]) if isinstance(piece, TextPiece))
        for _ in range(99)
    ]
    assert "".join(given) == text * 99
    assert given[:65] == [""] * 65
    assert given[66:] == [text] * 33


@pytest.mark.parametrize("schema", [{}, {"enum": []}, {"enum": [1]}, {"enum": "a"}])
def test_there_have_to_be_words(schema: Any) -> None:
    with pytest.raises(BadBody, match="enum"):
        choice_of(schema, "generationConfig.responseSchema")

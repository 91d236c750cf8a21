import json
from typing import Any, get_args

import pytest

from kinference.shapes.answers import (
    Answer,
    ArgumentsPiece,
    Cited,
    CitedWithin,
    Counted,
    Failed,
    Finish,
    Finished,
    Piece,
    ReasoningEnd,
    ReasoningPiece,
    RefusalPiece,
    Shown,
    Started,
    TextPiece,
    ToolBegun,
)
from kinference.shapes.citations import Citation, Place
from kinference.shapes.ir import (
    Audio,
    Block,
    Executed,
    File,
    Image,
    Media,
    Reasoning,
    Refusal,
    Sealed,
    Searched,
    ServerCall,
    ServerTools,
    Text,
    ToolCall,
    ToolResult,
    Unread,
)
from kinference.shapes.lost import Lost
from kinference.shapes.sse import SseReader
from kinference.shapes.translate import CLIENTS, DESTINATIONS
from kinference.shapes.unshown import lost, lost_of
from kinference.shapes.way_back import StreamTranslation, losses_of, read_answer, write_answer, write_stream
from kinference.vocabulary import Api, Loss
from tests.unit.shapes.conversions import (
    CHAT,
    COMPLETIONS,
    CONVERSE,
    FRAME,
    GEMINI,
    MESSAGES,
    RESPONSES,
    Stream,
    a_plan,
    chunk,
    data,
    named,
)

MARK = "c2VjcmV0"
"""What has to come out again, or to be told lost; it is base64, too."""
PNG = "iVBORw0KGgoAAAANSUhEUgAA" + MARK
SIGNED = Api.ANTHROPIC_MESSAGES
BLOCKS: dict[type[Block], Block] = {
    Text: Text(MARK),
    Image: Image(Media("image/png", PNG)),
    Audio: Audio(Media("audio/wav", MARK)),
    File: File(Media("application/pdf", MARK)),
    ToolCall: ToolCall("c", MARK, "{}"),
    ToolResult: ToolResult("c", (Text(MARK),)),
    Reasoning: Reasoning(MARK, "s", SIGNED),
    Sealed: Sealed(MARK, SIGNED),
    Searched: Searched((MARK,)),
    Executed: Executed("r", "print()", MARK),
    ServerCall: ServerCall("c", "s", MARK),
    ServerTools: ServerTools("s", ({"name": MARK, "input_schema": {}},)),
    Refusal: Refusal(MARK),
    Unread: Unread(MARK),
}
CITATION = Citation("https://a.org/" + MARK, "t", 0, 1)
WITHIN = Citation("", "t", 0, 1, MARK, Place("page_location", 0, 1, 2))
PIECES: dict[type[Any], list[Piece]] = {
    TextPiece: [TextPiece(MARK)],
    Shown: [Shown(Image(Media("image/png", PNG)))],
    RefusalPiece: [RefusalPiece(MARK)],
    ReasoningPiece: [ReasoningPiece(MARK)],
    ReasoningEnd: [ReasoningPiece("r"), ReasoningEnd(MARK, SIGNED)],
    Sealed: [Sealed(MARK, SIGNED)],
    ToolBegun: [ToolBegun(0, "c", MARK), ArgumentsPiece(0, "{}")],
    ArgumentsPiece: [ToolBegun(0, "c", "f"), ArgumentsPiece(0, json.dumps({MARK: 1}))],
    Executed: [Executed("r", MARK, "1")],
    Searched: [Searched((MARK,))],
    ServerCall: [ServerCall("c", "s", "f", "{}", MARK)],
    ServerTools: [ServerTools(MARK)],
    Cited: [TextPiece("t"), Cited(CITATION)],
    CitedWithin: [TextPiece("t"), CitedWithin(WITHIN)],
    Unread: [Unread(MARK)],
}
FRAMING = {Started, Counted, Finished, Failed}
CONVERSING = [api for api in CLIENTS if api is not Api.OPENAI_EMBEDDINGS]


class Played:
    """A destination whose stream is these pieces."""

    is_complete = is_over = True

    def __init__(self, pieces: list[Piece]) -> None:
        self._pieces = pieces

    def close(self) -> list[Piece]:
        return [*self._pieces, Finished(Finish.STOP)]


def streamed(client: Api, pieces: list[Piece], loss: Loss = Loss.WARN) -> bytes:
    back = a_plan(client, CHAT).back
    translation = StreamTranslation(back if loss is Loss.WARN else _untold(back), FRAME)
    translation._parser = Played(pieces)  # type: ignore[assignment]
    return translation.close()


def _untold(back: Any) -> Any:
    return type(back)(**{name: getattr(back, name) for name in back.__struct_fields__} | {"tells": False})


def test_every_kind_of_block_and_piece_is_tried() -> None:
    assert set(get_args(Block)) == set(BLOCKS)
    assert set(get_args(Piece)) - FRAMING == set(PIECES)


@pytest.mark.parametrize("client", CONVERSING)
@pytest.mark.parametrize("kind", BLOCKS)
def test_a_whole_answers_block_is_written_or_told_lost(client: Api, kind: type[Block]) -> None:
    back = a_plan(client, CHAT).back
    answer = Answer("i", "m", (BLOCKS[kind],))
    is_lost = bool(losses_of(back, answer))
    for written in (write_answer(back, answer, FRAME), write_stream(back, answer, FRAME)):
        read = json.dumps([json.loads(each) for each in _texts(written)])
        assert is_lost != (MARK in read or _seals(read)), read


def _texts(written: bytes) -> list[bytes]:
    events = [event.data for event in SseReader().feed(written) if event.data and event.data != b"[DONE]"]
    return events or [written]


def _seals(read: str) -> bool:
    """Whether a signature is in it as others keep it."""
    return "kinference." in read or "a2luZmVyZW5j" in read


@pytest.mark.parametrize("client", CONVERSING)
@pytest.mark.parametrize("kind", PIECES)
def test_a_streams_piece_is_written_or_told_lost(client: Api, kind: type[Any]) -> None:
    raw = streamed(client, PIECES[kind])
    read = json.dumps([json.loads(text) for text in _texts(raw)])
    is_told = b"x-kinference-warnings: dropped=answer." in raw
    is_written = MARK in read.split("x-kinference-warnings")[0] or _seals(read)
    assert is_told != is_written, raw


def test_a_streams_loss_is_told_once_and_not_where_nothing_is_to_be_told() -> None:
    pieces = PIECES[Shown] * 3
    assert streamed(MESSAGES, pieces).count(b": x-kinference-warnings: dropped=answer.image\n\n") == 1
    assert b"warnings" not in streamed(MESSAGES, pieces, Loss.SILENT)
    assert b"warnings" not in streamed(GEMINI, PIECES[Unread], Loss.SILENT)


def test_google_has_no_comments_and_reads_losses_beside_the_reason() -> None:
    [last] = [json.loads(text) for text in _texts(streamed(GEMINI, [*PIECES[Unread], TextPiece("t")]))][-1:]
    assert last["candidates"][0]["finishMessage"] == f"x-kinference-warnings: dropped=answer.{MARK}"


def test_what_a_client_cannot_be_shown_of_a_whole_answer() -> None:
    cut = Answer(blocks=(ToolCall("c", "f", '{"a'),), finish=Finish.LENGTH)
    for client in (MESSAGES, GEMINI):
        assert lost_of(cut, client) == (Lost("dropped", "answer.tool_call", "cut"),)
    assert lost_of(cut, CHAT) == ()
    several = Answer(blocks=(Text("a"),), others=(Answer(blocks=(Text("b"),)),))
    assert [lost_of(several, client) for client in (CHAT, GEMINI)] == [(), ()]
    for client in (MESSAGES, RESPONSES):
        assert lost_of(several, client) == (Lost("dropped", "answer.others"),)
    cited = Answer(blocks=(Text("a"),), citations=(CITATION,))
    assert lost_of(cited, COMPLETIONS) == (Lost("dropped", "answer.citation"),)
    assert str(lost(Unread("a;b=c"))) == "dropped=answer.a_b_c"


UNREAD: dict[Api, tuple[Any, str]] = {
    CHAT: ({"choices": [{"message": {"content": "t", "audio": {"id": "a"}}}]}, "audio"),
    RESPONSES: (
        {"output": [{"type": "computer_call", "id": "c"}, {"type": "message", "content": [{"type": "scent"}]}]},
        "computer_call;dropped=answer.scent",
    ),
    MESSAGES: ({"content": [{"type": "container_upload", "file_id": "f"}, {"type": 7}]}, "container_upload"),
    GEMINI: (
        {
            "candidates": [
                {"content": {"parts": [{"text": ""}, {"inlineData": {"mimeType": "audio/wav", "data": "a"}}]}}
            ]
        },
        "inlineData",
    ),
    CONVERSE: ({"output": {"message": {"content": [{"video": {}}]}}}, "video"),
}


@pytest.mark.parametrize("destination", DESTINATIONS)
def test_what_a_destination_alone_knows_is_told_lost(destination: Api) -> None:
    body, name = UNREAD[destination]
    back = a_plan(MESSAGES, destination).back
    losses = losses_of(back, read_answer(back, json.dumps(body).encode()))
    assert ";".join(map(str, losses)) == f"dropped=answer.{name}"


STREAMED: dict[Api, bytes] = {
    CHAT: data(chunk({"audio": {"id": "a"}}), chunk({"content": "t"}), chunk({}, "stop"), "[DONE]"),
    RESPONSES: named(
        {"type": "response.output_item.done", "output_index": 0, "item": {"type": "computer_call"}},
        {"type": "response.completed", "response": {}},
    ),
    MESSAGES: named(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "container_upload"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ),
    GEMINI: data({"candidates": [{"content": {"parts": [{"fileData": {"fileUri": "u"}}]}, "finishReason": "STOP"}]}),
}


@pytest.mark.parametrize("destination", STREAMED)
def test_what_a_streaming_destination_alone_knows_is_told_lost(destination: Api) -> None:
    raw = Stream(COMPLETIONS, destination).feed(STREAMED[destination]).end().raw
    assert raw.count(b": x-kinference-warnings: dropped=answer.") == 1
    assert raw.endswith(b"data: [DONE]\n\n")

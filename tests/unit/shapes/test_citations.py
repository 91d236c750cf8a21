import json
from typing import Any

import pytest
from anthropic._models import validate_type as anthropic_validate
from anthropic.types import Message, RawMessageStreamEvent
from google.genai.types import GenerateContentResponse
from openai._models import validate_type as openai_validate
from openai.types.chat import ChatCompletion
from openai.types.responses import Response, ResponseStreamEvent

from kinference.shapes.citations import CITATIONS_MAX, Citation, held_in, of_gemini, of_openai, stretches, to_gemini
from kinference.shapes.foreign_thoughts import without_foreign_thoughts
from kinference.shapes.sse import Event
from kinference.shapes.way_back import losses_of, read_answer
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import (
    CHAT,
    CONVERSE,
    GEMINI,
    MESSAGES,
    RESPONSES,
    Stream,
    a_plan,
    answered,
    chunk,
    data,
    named,
)

URL, TITLE = "https://x.org/a", "A page"
SAID = "Só it is. And so on."  # of which the first sentence rests on a page; in UTF-8 a byte longer
START, END = 0, len("Só it is.")
PAGE = {"url": URL, "title": TITLE}
FLAT = {"type": "url_citation", "start_index": START, "end_index": END, **PAGE}
NESTED = {"type": "url_citation", "url_citation": {"start_index": START, "end_index": END, **PAGE}}
LOCATION = {"type": "web_search_result_location", **PAGE, "cited_text": "so", "encrypted_index": "E"}
GROUNDING = {
    "webSearchQueries": ["q"],
    "groundingChunks": [{"web": {"uri": URL, "title": TITLE}}, {"web": {"uri": "https://y.org"}}],
    "groundingSupports": [{"segment": {"endIndex": END + 1, "text": "Só it is."}, "groundingChunkIndices": [0, 7]}],
}
BEDROCKS = {"title": TITLE, "sourceContent": [{"text": "so"}], "location": {"web": {"url": URL, "domain": "x.org"}}}

WHOLE: dict[Api, Any] = {
    CHAT: {
        "id": "c",
        "choices": [{"message": {"content": SAID, "annotations": [NESTED]}, "finish_reason": "stop"}],
    },
    RESPONSES: {
        "id": "resp_1",
        "status": "completed",
        "output": [
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "message", "content": [{"type": "output_text", "text": SAID, "annotations": [FLAT]}]},
        ],
    },
    MESSAGES: {
        "id": "msg_1",
        "content": [
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
            {"type": "text", "text": SAID[:END], "citations": [LOCATION]},
            {"type": "text", "text": SAID[END:]},
        ],
        "stop_reason": "end_turn",
    },
    GEMINI: {
        "candidates": [{"content": {"parts": [{"text": SAID}]}, "finishReason": "STOP", "groundingMetadata": GROUNDING}]
    },
    CONVERSE: {
        "output": {
            "message": {
                "content": [
                    {"citationsContent": {"content": [{"text": SAID[:END]}], "citations": [BEDROCKS]}},
                    {"text": SAID[END:]},
                ]
            }
        },
        "stopReason": "end_turn",
    },
}


def delta(**members: Any) -> Any:
    return {"type": "content_block_delta", "index": 0, "delta": members}


STREAMS: dict[Api, bytes] = {
    CHAT: data(
        chunk({"role": "assistant", "content": SAID[:4]}),
        chunk({"content": SAID[4:]}),
        chunk({"annotations": [NESTED]}),
        chunk({}, "stop"),
        "[DONE]",
    ),
    RESPONSES: named(
        {"type": "response.created", "response": {"id": "resp_1", "model": "m"}},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": SAID},
        {
            "type": "response.output_text.annotation.added",
            "output_index": 1,
            "content_index": 0,
            "annotation_index": 0,
            "annotation": FLAT,
        },
        {
            "type": "response.output_item.done",
            "output_index": 1,
            "item": {"type": "message", "content": [{"type": "output_text", "text": SAID, "annotations": [FLAT]}]},
        },
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
    ),
    MESSAGES: named(
        {"type": "message_start", "message": {"id": "msg_1", "model": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "", "citations": []}},
        delta(type="citations_delta", citation=LOCATION),
        delta(type="text_delta", text=SAID[:4]),
        delta(type="text_delta", text=SAID[4:END]),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": SAID[END:]}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ),
    GEMINI: data(
        {"candidates": [{"content": {"parts": [{"text": SAID[:4]}]}}]},
        {"candidates": [{"content": {"parts": [{"text": SAID[4:]}]}, "groundingMetadata": GROUNDING}]},
        {"candidates": [{"finishReason": "STOP", "groundingMetadata": GROUNDING}]},
    ),
}


def checked(client: Api, kind: Any, value: Any) -> Any:
    """As the client's official SDK reads it, with its own strict validation."""
    if client is GEMINI:
        return GenerateContentResponse.model_validate(value)
    return (anthropic_validate if client is MESSAGES else openai_validate)(type_=kind, value=value)


def cited_in(client: Api, body: Any) -> list[tuple[str, str]]:
    """The pages in a client's whole answer, and the text that rests on each."""
    match client:
        case Api.OPENAI_CHAT:
            message = checked(client, ChatCompletion, body).choices[0].message
            found = [note.url_citation for note in message.annotations or ()]
            return [(note.url, message.content[note.start_index : note.end_index]) for note in found]
        case Api.OPENAI_RESPONSES:
            parts = [part for item in checked(client, Response, body).output for part in item.content]
            return [
                (note.url, part.text[note.start_index : note.end_index]) for part in parts for note in part.annotations
            ]
        case Api.ANTHROPIC_MESSAGES:
            blocks = checked(client, Message, body).content
            assert "".join(block.text for block in blocks) == SAID
            return [(note.url, block.text) for block in blocks for note in block.citations or ()]
        case _:
            candidate = checked(client, None, body).candidates[0]
            if candidate.grounding_metadata is None:
                return []
            pages = candidate.grounding_metadata.grounding_chunks
            text = "".join(part.text for part in candidate.content.parts).encode()
            return [
                (pages[number].web.uri, text[one.segment.start_index : one.segment.end_index].decode())
                for one in candidate.grounding_metadata.grounding_supports
                for number in one.grounding_chunk_indices
            ]


@pytest.mark.parametrize("destination", WHOLE)
@pytest.mark.parametrize("client", [CHAT, RESPONSES, MESSAGES, GEMINI])
def test_the_pages_that_an_answer_rests_on_are_the_clients_too(client: Api, destination: Api) -> None:
    assert cited_in(client, answered(WHOLE[destination], client, destination)) == [(URL, SAID[:END])]


@pytest.mark.parametrize("destination", STREAMS)
def test_a_stream_to_chat_tells_its_pages(destination: Api) -> None:
    events = Stream(CHAT, destination).feed(STREAMS[destination]).end().events
    deltas = [event["choices"][0]["delta"] for event in events if event != "[DONE]" and event["choices"]]
    [told] = [note for delta in deltas for note in delta.get("annotations", ())]
    assert told == NESTED
    assert "".join(delta.get("content") or "" for delta in deltas) == SAID


@pytest.mark.parametrize("destination", STREAMS)
def test_a_stream_to_responses_tells_its_pages_and_repeats_them(destination: Api) -> None:
    events = Stream(RESPONSES, destination).feed(STREAMS[destination]).end().events
    for event in events:
        assert checked(RESPONSES, ResponseStreamEvent, event) is not None
    [added] = [event for event in events if event["type"] == "response.output_text.annotation.added"]
    assert added["annotation"] == FLAT
    assert cited_in(RESPONSES, events[-1]["response"]) == [(URL, SAID[:END])]


@pytest.mark.parametrize("destination", STREAMS)
def test_a_stream_to_messages_tells_its_pages_beside_the_text(destination: Api) -> None:
    events = Stream(MESSAGES, destination).feed(STREAMS[destination]).end().events
    for event in events:
        assert checked(MESSAGES, RawMessageStreamEvent, event) is not None
    [told] = [event["delta"] for event in events if event.get("delta", {}).get("type") == "citations_delta"]
    assert told["citation"]["url"] == URL


@pytest.mark.parametrize("destination", STREAMS)
def test_a_stream_to_gemini_tells_its_pages_at_the_end(destination: Api) -> None:
    *_, last = Stream(GEMINI, destination).feed(STREAMS[destination]).end().events
    [support] = last["candidates"][0]["groundingMetadata"]["groundingSupports"]
    assert support["segment"] == {"startIndex": 0, "endIndex": END + 1, "text": SAID[:END]}


def test_a_page_of_a_stream_from_bedrock_is_told() -> None:
    translation = Stream(CHAT, CONVERSE).translation
    pieces = [
        ("messageStart", {"role": "assistant"}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "x "}}),
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"citation": BEDROCKS}}),
        ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "so"}}),
        ("contentBlockStop", {"contentBlockIndex": 1}),
    ]
    written = b"".join(translation.feed(frame(name, body)) for name, body in pieces)
    assert b'"url_citation":{"start_index":2,"end_index":4,"title":"A page","url":"https://x.org/a"}' in written


def frame(name: str, body: Any) -> Event:
    return Event(name, json.dumps(body).encode(), b"")


def test_what_was_recited_has_its_source_too() -> None:
    candidate = {"citationMetadata": {"citationSources": [{"startIndex": 0, "endIndex": 2, "uri": URL}, {"uri": ""}]}}
    assert of_gemini(candidate, "abc") == (Citation(URL, "", 0, 2),)


def test_what_is_no_citation_of_a_page_is_passed_over() -> None:
    odd = [
        7,
        None,
        {"type": "file_citation", "file_id": "f"},
        {"type": "url_citation", "url": 1},
        {"type": "url_citation"},
    ]
    assert of_openai(odd) == of_openai("x") == of_openai(None) == ()
    assert len(of_openai([FLAT] * (CITATIONS_MAX + 1))) == CITATIONS_MAX
    assert of_openai([{**FLAT, "start_index": 9, "end_index": -3}], 1) == (Citation(URL, TITLE, 10, 10),)


def test_a_text_is_cut_where_its_pages_begin_and_end() -> None:
    one, other = Citation("1", "", 2, 6), Citation("2", "", 4, 9)
    assert list(stretches("abcdef", 2, [one, other])) == [
        ("ab", [one]),
        ("cd", [one, other]),
        ("ef", [other]),
    ]
    assert list(stretches("ab", 20, [one, other])) == [("ab", [])]


def test_each_page_is_told_once_to_gemini() -> None:
    made = to_gemini([Citation("u", "t", 0, 1), Citation("u", "t", 1, 2)], "ab")
    assert made["groundingChunks"] == [{"web": {"uri": "u", "title": "t"}}]
    assert [one["groundingChunkIndices"] for one in made["groundingSupports"]] == [[0], [0]]


def test_what_anthropic_did_not_cite_does_not_go_to_anthropic() -> None:
    content = answered(WHOLE[GEMINI], MESSAGES, GEMINI)["content"]
    body = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": content}]}
    kept = json.loads(without_foreign_thoughts(json.dumps(body).encode(), MESSAGES, at_provider=True))
    assert kept["messages"][1]["content"] == [{"type": "text", "text": block["text"]} for block in content]
    own = json.dumps({"messages": [{"role": "assistant", "content": WHOLE[MESSAGES]["content"]}]}).encode()
    assert without_foreign_thoughts(own, MESSAGES, at_provider=True) is own


PLACES = [
    ("documentChar", "char_location", "start_char_index", "end_char_index"),
    ("documentPage", "page_location", "start_page_number", "end_page_number"),
    ("documentChunk", "content_block_location", "start_block_index", "end_block_index"),
]


@pytest.mark.parametrize(("bedrocks", "kind", "first", "last"), PLACES)
def test_what_is_cited_out_of_a_document_comes_from_bedrock_to_claudes_clients(
    bedrocks: str, kind: str, first: str, last: str
) -> None:
    location = {bedrocks: {"documentIndex": 1, "start": 3, "end": 5}}
    found = {"title": "D", "sourceContent": [{"text": "so"}], "location": location}
    cited = {"citationsContent": {"content": [{"text": SAID[:END]}], "citations": [found]}}
    body = {"output": {"message": {"content": [cited, {"text": SAID[END:]}]}}, "stopReason": "end_turn"}
    first_block, second_block = checked(MESSAGES, Message, answered(body, MESSAGES, CONVERSE)).content
    [told] = first_block.citations
    assert (told.type, told.document_index, told.document_title, told.cited_text) == (kind, 1, "D", "so")
    assert (getattr(told, first), getattr(told, last)) == (3, 5)
    assert second_block.citations is None
    stream = Stream(MESSAGES, CONVERSE)
    events: list[tuple[str, Any]] = [
        ("messageStart", {}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": SAID[:END]}}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"citation": found}}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": "end_turn"}),
        ("metadata", {}),
    ]
    for name, event in events:
        stream.raw += stream.translation.feed(Event(name, json.dumps(event).encode(), b""))
    for event in stream.events:
        checked(MESSAGES, RawMessageStreamEvent, event)
    deltas = [event["delta"] for event in stream.events if event["type"] == "content_block_delta"]
    assert deltas[-1]["citation"] == told.model_dump()


@pytest.mark.parametrize("client", [CHAT, RESPONSES, GEMINI])
def test_what_is_cited_out_of_a_document_has_no_form_elsewhere(client: Api) -> None:
    location = {"type": "char_location", "cited_text": "so", "document_index": 0, "document_title": "D"}
    block = {"type": "text", "text": SAID, "citations": [{**location, "start_char_index": 0, "end_char_index": 2}]}
    body = {"content": [block], "stop_reason": "end_turn"}
    assert cited_in(client, answered(body, client, MESSAGES)) == []
    back = a_plan(client, MESSAGES).back
    losses = losses_of(back, read_answer(back, json.dumps(body).encode()))
    assert [str(loss) for loss in losses] == ["dropped=answer.document_citation"]


def test_what_is_cited_out_of_files_that_openai_holds_is_told() -> None:
    held = {"type": "file_citation", "file_id": "f", "filename": "a", "index": 3}
    assert list(held_in([held, FLAT, {"type": 7}, None])) == ["file_citation"]
    said = {"type": "message", "content": [{"type": "output_text", "text": SAID, "annotations": [held]}]}
    back = a_plan(CHAT, RESPONSES).back
    losses = losses_of(back, read_answer(back, json.dumps({"output": [said]}).encode()))
    assert [str(loss) for loss in losses] == ["dropped=answer.file_citation"]
    stream = Stream(CHAT, RESPONSES).feed(
        named(
            {"type": "response.output_text.delta", "output_index": 0, "delta": SAID},
            {"type": "response.output_item.done", "output_index": 0, "item": said},
            {"type": "response.completed", "response": {}},
        )
    )
    assert b": x-kinference-warnings: dropped=answer.file_citation\n\n" in stream.raw

from typing import Any

import msgspec
from openai.types.responses import Response

from kinference.sim.answers import Head, Usage
from kinference.sim.responses_answers import ResponsesWriter

USAGE = Usage(prompt_tokens=11, cached_tokens=8, completion_tokens=2)


def stream(finish: str) -> list[Any]:
    writer = ResponsesWriter(Head("1", 1795978704, "tiny", prompt_tokens=11, finish=finish))
    events = [*writer.opening(), writer.word("abc "), writer.last_word("def "), *writer.closing(USAGE)]
    return [msgspec.json.decode(event.split(b"data: ", 1)[1]) for event in events]


def test_a_stream_tells_the_making_of_one_message() -> None:
    events = stream("stop")
    assert [event["type"] for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event["sequence_number"] for event in events] == list(range(10))
    assert events[6]["text"] == "abc def "


def test_the_last_event_has_the_whole_response() -> None:
    response = Response.model_validate(stream("stop")[-1]["response"])
    assert response.output_text == "abc def "
    assert response.usage is not None
    assert (response.usage.input_tokens_details.cached_tokens, response.usage.output_tokens) == (8, 2)


def test_an_answer_cut_by_its_limit_is_incomplete() -> None:
    last = stream("length")[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


def test_a_whole_answer_is_what_the_stream_ends_with() -> None:
    writer = ResponsesWriter(Head("1", 1795978704, "tiny", prompt_tokens=11, finish="stop"))
    assert msgspec.json.decode(writer.whole("abc def ", USAGE)) == stream("stop")[-1]["response"]

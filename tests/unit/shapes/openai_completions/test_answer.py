from openai.types import Completion

from kinference.shapes.answers import Frame
from tests.unit.shapes.conversions import CHAT, COMPLETIONS, Stream, answered, chunk, data

USAGE = {"prompt_tokens": 3, "completion_tokens": 2}


def test_the_sdk_takes_an_answer() -> None:
    choice = {"message": {"content": "t", "refusal": "n"}, "finish_reason": "length"}
    body = answered({"id": "x", "model": "up", "choices": [choice], "usage": USAGE}, COMPLETIONS, CHAT)
    completion = Completion.model_validate(body)
    assert (completion.id, completion.choices[0].text, completion.choices[0].finish_reason) == (
        "cmpl-x",
        "tn",
        "length",
    )
    assert completion.usage is not None
    assert completion.usage.total_tokens == 5


def test_a_stream_of_text() -> None:
    stream = Stream(COMPLETIONS, CHAT).feed(
        data(
            chunk({"reasoning": "r"}),
            chunk({"content": "a"}),
            chunk({}, "stop"),
            {"choices": [], "usage": USAGE},
            "[DONE]",
        )
    )
    text, last, usage, done = stream.events
    assert (text["choices"][0]["text"], text["usage"]) == ("a", None)
    assert (last["choices"][0]["finish_reason"], usage["usage"]["total_tokens"], done) == ("stop", 5, "[DONE]")
    silent = Stream(COMPLETIONS, CHAT, Frame("r", 1, wants_usage=False)).feed(data(chunk({}, "stop"), "[DONE]"))
    assert ["usage" in event for event in silent.events[:-1]] == [False]


def test_an_error_has_no_good_end_after_it() -> None:
    stream = Stream(COMPLETIONS, CHAT).feed(data(chunk({"content": "a"}), {"error": {"message": "boom"}}, "[DONE]"))
    assert stream.events[-1]["error"]["message"] == "boom"
    assert Stream(COMPLETIONS, CHAT).translation.keep_alive() == b": keep-alive\n\n"

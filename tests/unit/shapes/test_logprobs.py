import json
from decimal import Decimal
from typing import Any

import pytest

from kinference.shapes.answers import Answer, Frame
from kinference.shapes.ir import Text
from kinference.shapes.logprobs import of_gemini, of_openai, to_chat, to_completions, to_gemini
from kinference.shapes.lost import Untranslatable
from kinference.shapes.translate import CLIENTS
from tests.unit.shapes.conversions import (
    CHAT,
    COMPLETIONS,
    CONVERSE,
    GEMINI,
    HI,
    MESSAGES,
    RESPONSES,
    Stream,
    answered,
    data,
    planned,
    sent,
)


def entry(token: str, logprob: Any = -0.5, *tops: tuple[str, float]) -> dict[str, Any]:
    likely = [{"token": top, "logprob": p, "bytes": list(top.encode())} for top, p in tops]
    return {"token": token, "logprob": logprob, "bytes": list(token.encode()), "top_logprobs": likely}


TWO = [entry("Hé", -0.25, ("Hé", -0.25), ("Ho", -2.0)), entry("!", -0.5, ("!", -0.5))]
CHAT_ANSWER = {
    "id": "c",
    "choices": [
        {"index": 0, "message": {"content": "Hé!"}, "logprobs": {"content": TWO}, "finish_reason": "stop"},
        {"index": 1, "message": {"content": "Ho!"}, "finish_reason": "length"},
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 4},
}
GEMINI_RESULT = {
    "chosenCandidates": [{"token": "Hé", "logProbability": -0.25}, {"token": "!", "logProbability": -0.5}],
    "topCandidates": [
        {"candidates": [{"token": "Hé", "logProbability": -0.25}, {"token": "Ho", "logProbability": -2.0}]},
        {"candidates": [{"token": "!", "logProbability": -0.5}]},
    ],
}


def test_each_apis_form_is_another_of_the_same_thing() -> None:
    entries = of_openai(TWO)
    assert to_chat(entries) == {"content": TWO, "refusal": None}
    assert of_gemini(to_gemini(entries)) == entries == of_gemini(GEMINI_RESULT)
    assert to_completions(entries, 3) == {
        "text_offset": [3, 5],
        "token_logprobs": [-0.25, -0.5],
        "tokens": ["Hé", "!"],
        "top_logprobs": [{"Hé": -0.25, "Ho": -2.0}, {"!": -0.5}],
    }
    assert (to_chat(()), to_completions(())) == (None, None)


@pytest.mark.parametrize("junk", [None, [], {}, "x", [1], [{"token": 1, "logprob": True, "top_logprobs": [2]}], [{}]])
def test_what_is_none_is_passed_over_or_said_to_be_unknown(junk: Any) -> None:
    assert all(one["logprob"] == -9999.0 for one in of_openai(junk))
    assert all(one["token"] == "" for one in of_gemini({"chosenCandidates": junk, "topCandidates": junk}))
    assert of_gemini(junk) == () or isinstance(junk, dict)


def test_fractions_keep_their_digits() -> None:
    assert of_openai([{"token": "a", "logprob": Decimal("-0.12345678901234567890")}])[0]["logprob"] == Decimal(
        "-0.12345678901234567890"
    )


@pytest.mark.parametrize(
    ("client", "body"),
    [
        (CHAT, {"model": "m", "messages": HI, "logprobs": True, "top_logprobs": 3}),
        (COMPLETIONS, {"model": "m", "prompt": "hi", "logprobs": 3}),
        (RESPONSES, {"model": "m", "input": "hi", "top_logprobs": 3}),
        (
            GEMINI,
            {"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": {"responseLogprobs": True, "logprobs": 3}},
        ),
    ],
)
def test_probabilities_are_asked_for_where_there_are_some_and_refused_elsewhere(client: Any, body: Any) -> None:
    chat = sent(body, client, CHAT)
    assert (chat["logprobs"], chat["top_logprobs"]) == (True, 3)
    responses = sent(body, client, RESPONSES)
    assert (responses["include"], responses["top_logprobs"]) == (["message.output_text.logprobs"], 3)
    config = sent(body, client, GEMINI)["generationConfig"]
    assert (config["responseLogprobs"], config["logprobs"]) == (True, 3)
    for lacking in (MESSAGES, CONVERSE):
        with pytest.raises(Untranslatable, match=r"(?i)logprobs"):
            planned(body, client, lacking)


def test_several_answers_and_a_bias_go_where_they_mean_something() -> None:
    body = {"model": "m", "messages": HI, "n": 2, "logit_bias": {"7": -1}}
    chat = sent({"model": "m", "prompt": "hi", "n": 2, "logit_bias": {"7": -1}}, COMPLETIONS, CHAT)
    assert (chat["n"], chat["logit_bias"]) == (2, {"7": -1})
    assert sent({"model": "m", "messages": HI, "n": 2}, CHAT, GEMINI)["generationConfig"]["candidateCount"] == 2
    assert "n" not in sent({"model": "m", "messages": HI, "n": 1}, CHAT, CHAT)
    for lacking in (RESPONSES, MESSAGES, CONVERSE, GEMINI):
        with pytest.raises(Untranslatable):
            planned(body, CHAT, lacking)
    with pytest.raises(Untranslatable, match="one answer only"):
        planned({"model": "m", "messages": HI, "n": 2, "stream": True}, CHAT, GEMINI)


def test_every_answer_comes_back() -> None:
    gemini = {
        "candidates": [
            {"content": {"parts": [{"text": "Hé!"}]}, "finishReason": "STOP", "logprobsResult": GEMINI_RESULT},
            {"content": {"parts": [{"text": "Ho!"}]}, "finishReason": "MAX_TOKENS", "index": 1},
        ]
    }
    first, second = answered(gemini, CHAT, GEMINI)["choices"]
    assert (first["message"]["content"], first["logprobs"]) == ("Hé!", {"content": TWO, "refusal": None})
    assert (second["index"], second["message"]["content"], second["finish_reason"]) == (1, "Ho!", "length")
    first, second = answered(CHAT_ANSWER, GEMINI, CHAT)["candidates"]
    assert first["logprobsResult"] == GEMINI_RESULT
    assert (second["index"], second["finishReason"]) == (1, "MAX_TOKENS")
    first, second = answered(CHAT_ANSWER, COMPLETIONS, CHAT)["choices"]
    assert (first["logprobs"]["tokens"], second["index"], second["text"]) == (["Hé", "!"], 1, "Ho!")
    assert answered(CHAT_ANSWER, RESPONSES, CHAT)["output"][0]["content"][0]["logprobs"] == TWO


def test_a_stream_brings_them_with_its_text() -> None:
    chunks = data(
        {"id": "c", "choices": [{"index": 0, "delta": {"content": "Hé"}, "logprobs": {"content": TWO[:1]}}]},
        {"id": "c", "choices": [{"index": 0, "delta": {"content": "!"}, "logprobs": {"content": TWO[1:]}}]},
        {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        "[DONE]",
    )
    chat = Stream(CHAT, CHAT).feed(chunks).events
    assert [one["choices"][0]["logprobs"]["content"] for one in chat[1:3]] == [TWO[:1], TWO[1:]]
    completions = Stream(COMPLETIONS, CHAT).feed(chunks).events
    assert [one["choices"][0]["logprobs"]["text_offset"] for one in completions[:2]] == [[0], [2]]
    events = Stream(RESPONSES, CHAT).feed(chunks).events
    assert [one["logprobs"] for one in events if one["type"].endswith("text.delta")] == [TWO[:1], TWO[1:]]
    assert [one["logprobs"] for one in events if one["type"].endswith("text.done")] == [TWO]
    assert events[-1]["response"]["output"][0]["content"][0]["logprobs"] == TWO
    again = Stream(CHAT, RESPONSES).feed(
        b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)
    )
    assert [one["choices"][0]["logprobs"]["content"] for one in again.events[1:3]] == [TWO[:1], TWO[1:]]
    gemini = Stream(GEMINI, CHAT).feed(chunks)
    assert [one["candidates"][0]["logprobsResult"]["chosenCandidates"][0]["token"] for one in gemini.events[:2]] == [
        "Hé",
        "!",
    ]
    back = Stream(CHAT, GEMINI).feed(gemini.raw).end()
    assert [one["choices"][0]["logprobs"]["content"] for one in back.events[1:3]] == [TWO[:1], TWO[1:]]


@pytest.mark.parametrize("client", [CHAT, COMPLETIONS, RESPONSES, GEMINI])
def test_no_answer_has_any_unless_it_was_given_some(client: Any) -> None:
    written = json.dumps(CLIENTS[client].emit_answer(Answer(blocks=(Text("a"),)), Frame("r", 1)))
    assert '"token"' not in written

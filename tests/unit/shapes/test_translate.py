import json
from decimal import Decimal

import pytest

from kinference.shapes.scan import BadBody
from kinference.shapes.sse import SseReader
from kinference.shapes.translate import Way, emit, plan, reaches, reader_of, translates, unasked
from kinference.vocabulary import Api, Loss, Need
from tests.unit.shapes.conversions import CHAT, COMPLETIONS, GEMINI, HI, MESSAGES, RESPONSES, planned, sent


def test_needs_that_no_translation_carries_close_every_way() -> None:
    assert MESSAGES in reaches(CHAT, frozenset())
    assert MESSAGES in reaches(CHAT, frozenset({Need.VISION, Need.TOOLS}))
    assert reaches(CHAT, frozenset({Need.TOKEN_PROMPT})) == frozenset()
    for need in (Need.LOGPROBS, Need.SEVERAL_ANSWERS, Need.LOGIT_BIAS):
        assert MESSAGES not in reaches(CHAT, frozenset({need}))
        assert CHAT in reaches(COMPLETIONS, frozenset({need}))
    assert GEMINI in reaches(CHAT, frozenset({Need.LOGPROBS, Need.SEVERAL_ANSWERS}))
    assert GEMINI not in reaches(CHAT, frozenset({Need.LOGPROBS, Need.LOGIT_BIAS}))


def test_audio_goes_where_it_is_heard() -> None:
    apis = reaches(MESSAGES, frozenset({Need.AUDIO}))
    assert CHAT in apis
    assert MESSAGES not in reaches(CHAT, frozenset({Need.AUDIO}))


def test_hosts_are_reached_as_the_api_they_serve() -> None:
    assert {MESSAGES, Api.VERTEX_ANTHROPIC} <= reaches(CHAT, frozenset())
    assert translates(MESSAGES, Api.AZURE_OPENAI)
    assert not translates(CHAT, Api.OPENAI_EMBEDDINGS)
    embedding = {api for api in Api if translates(Api.OPENAI_EMBEDDINGS, api)}
    assert embedding == {Api.GEMINI, Api.VERTEX_GEMINI, Api.BEDROCK_CONVERSE}


def test_the_model_is_the_destinations_and_the_stream_the_clients() -> None:
    body = json.dumps({"model": "theirs", "messages": HI}).encode()
    made = plan(body, Way(CHAT, MESSAGES, "ours", streams=True))
    assert (made.request.model, made.back.model, made.back.is_streaming) == ("ours", "ours", True)
    assert json.loads(emit(made))["stream"] is True
    assert isinstance(reader_of(made.back), SseReader)


def test_e13_a_lone_surrogate_is_replaced_and_told() -> None:
    made = plan(b'{"messages":[{"role":"user","content":"\\ud83d"}],"max_tokens":1}', Way(CHAT, MESSAGES, "m"))
    assert [str(lost) for lost in made.losses] == ["replaced=lone surrogates"]
    assert json.loads(emit(made))["messages"][0]["content"][0]["text"] == "\ufffd"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b"{}", b'{"messages":{}}'])
def test_what_is_no_request_is_told(body: bytes) -> None:
    with pytest.raises(BadBody):
        plan(body, Way(CHAT, MESSAGES, "m"))


def test_only_what_asks_for_json_in_words_is_unfenced_later() -> None:
    body = {"messages": HI, "response_format": {"type": "json_object"}}
    assert planned(body, CHAT, MESSAGES).back.is_bare_json
    assert not planned(body, CHAT, CHAT).back.is_bare_json
    assert planned(body, CHAT, MESSAGES, Loss.SILENT).losses == ()


@pytest.mark.parametrize(
    ("client", "body"),
    [(CHAT, b'{"n":2}'), (COMPLETIONS, b"{}")],
)
def test_several_answers_and_completions_are_not_put_in_the_other_form(client: Api, body: bytes) -> None:
    assert unasked(body, Way(client, client, "m"), wants_usage=True) is None


def test_what_a_client_asked_for_is_repeated_in_the_form_it_wants() -> None:
    told = unasked(b'{"n":1,"temperature":0.5,"stream":true}', Way(RESPONSES, RESPONSES, "m"), wants_usage=True)
    assert told is not None
    assert told.back.echo == {"temperature": Decimal("0.5")}


@pytest.mark.parametrize(("model", "longest"), [("gpt-5", 40), ("llama", 46)])
def test_ids_of_calls_are_short_where_the_model_is_openais(model: str, longest: int) -> None:
    long = "chatcmpl-tool-" + "0" * 32
    call = {"type": "tool_use", "id": long, "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": long, "content": "r"}
    turns = [*HI, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    made = sent({"model": "m", "max_tokens": 9, "messages": turns}, MESSAGES, CHAT, model)["messages"]
    assert len(made[1]["tool_calls"][0]["id"]) == longest
    assert made[1]["tool_calls"][0]["id"] == made[2]["tool_call_id"]

import pytest

from kinference.shapes.ir import Json
from kinference.shapes.lost import Untranslatable
from kinference.shapes.scan import BadBody
from kinference.vocabulary import Api, Loss
from tests.unit.shapes.conversions import (
    CHAT,
    CONVERSE,
    GEMINI,
    HI,
    MESSAGES,
    RESPONSES,
    TOOL,
    chat_to_messages,
    messages_to_chat,
    planned,
    sent,
    warnings,
)

CHAT_BODY = {"model": "m", "messages": HI, "max_tokens": 5}


def told(**members: object) -> str:
    return warnings({**CHAT_BODY, **members}, CHAT, MESSAGES)


def test_e16_every_setting_is_mapped_or_told() -> None:
    body = {
        "temperature": 0.5,
        "top_p": 0.5,
        "stop": ["a"],
        "seed": 1,
        "frequency_penalty": 1,
        "presence_penalty": 1,
        "verbosity": "low",
        "prediction": {"type": "content"},
        "vendor_field": 1,
        "reasoning_effort": "low",
    }
    lost = {part.partition("=")[2] for part in told(**body).split(";")}
    assert lost == {"seed", "frequency_penalty", "verbosity", "prediction", "vendor_field"}
    written = chat_to_messages(**body)
    assert {"temperature", "top_p", "stop_sequences", "thinking"} <= written.keys()


def test_f1_who_names_no_cap_is_given_one_and_told() -> None:
    assert warnings({"model": "m", "messages": HI}, CHAT, MESSAGES) == "assumed=max_tokens:8192"
    assert chat_to_messages()["max_tokens"] == 8192
    planned({"model": "m", "messages": HI}, CHAT, MESSAGES, Loss.STRICT)  # it is no loss


@pytest.mark.parametrize(
    "members",
    [
        {"n": 2},
        {"logprobs": True},
        {"logit_bias": {"1": 1}},
        {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA"}}]}]},
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]},
        {"max_tokens": 0},
    ],
)
def test_what_would_change_the_meaning_is_refused(members: dict[str, object]) -> None:
    with pytest.raises(Untranslatable):
        chat_to_messages(**members)


@pytest.mark.parametrize("members", [{"n": 1}, {"logprobs": False}, {"logit_bias": {}}, {"service_tier": "auto"}])
def test_what_asks_for_nothing_is_not_told(members: dict[str, object]) -> None:
    assert told(**members) == ""


def test_silence_is_a_policy_too() -> None:
    assert planned({**CHAT_BODY, "seed": 1}, CHAT, MESSAGES, Loss.SILENT).losses == ()


def test_e10_thoughts_go_back_to_their_issuer_alone() -> None:
    thinking = {"type": "thinking", "thinking": "r", "signature": "s"}
    turns = [*HI, {"role": "assistant", "content": [thinking, {"type": "text", "text": "a"}]}, *HI]
    assert messages_to_chat(messages=turns)["messages"][1] == {"role": "assistant", "content": "a"}
    assert warnings({"model": "m", "max_tokens": 5, "messages": turns}, MESSAGES, CHAT) == "dropped=thinking.signature"
    kept = {"role": "assistant", "content": "a", "thinking_blocks": [thinking]}
    unsigned = {"role": "assistant", "content": "a", "thinking_blocks": [{**thinking, "signature": ""}]}
    assert chat_to_messages(messages=[*HI, kept, *HI])["messages"][1]["content"][0] == thinking
    assert [part["type"] for part in chat_to_messages(messages=[*HI, unsigned, *HI])["messages"][1]["content"]] == [
        "text"
    ]


def test_e10_thoughts_that_led_to_nothing_go_back_to_nobody() -> None:
    thinking = {"type": "thinking", "thinking": "r", "signature": "s"}
    said = {"type": "text", "text": "a"}
    turns = [*HI, {"role": "assistant", "content": [thinking]}, *HI, {"role": "assistant", "content": [said, thinking]}]
    body = {"model": "m", "max_tokens": 9, "messages": [*turns, *HI]}
    got = sent(body, MESSAGES, MESSAGES)["messages"]
    assert [(turn["role"], [part["type"] for part in turn["content"]]) for turn in got] == [
        ("user", ["text", "text"]),
        ("assistant", ["text"]),
        ("user", ["text"]),
    ]


def test_e2_a_mended_conversation_is_told_and_strictly_refused() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = {
        **CHAT_BODY,
        "max_tokens": 99,
        "tools": [TOOL],
        "messages": [*HI, {"role": "assistant", "tool_calls": [call]}, *HI],
    }
    assert warnings(body, CHAT, MESSAGES) == warnings(body, CHAT, RESPONSES) == "mended=messages:c1"
    assert [item["type"] for item in sent(body, CHAT, RESPONSES)["input"]] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]
    with pytest.raises(Untranslatable, match="c1"):
        planned(body, CHAT, MESSAGES, Loss.STRICT)


def test_hosts_of_an_api_are_like_it() -> None:
    assert planned(CHAT_BODY, CHAT, Api.VERTEX_ANTHROPIC).back.destination is MESSAGES


@pytest.mark.parametrize("destination", [MESSAGES, Api.BEDROCK_CONVERSE])
def test_newer_claudes_begin_their_answers_themselves(destination: Api) -> None:
    body = CHAT_BODY | {"messages": [*HI, {"role": "assistant", "content": "So: "}]}
    with pytest.raises(Untranslatable, match="beginning of the answer"):
        planned(body, CHAT, destination, model="claude-opus-4-6")
    (part,) = sent(body, CHAT, destination, "claude-sonnet-4-5")["messages"][-1]["content"]
    assert part["text"] == "So:"


def test_a_beginning_of_the_answer_that_is_not_continued_is_told() -> None:
    body = {"model": "m", "max_tokens": 99, "messages": [*HI, {"role": "assistant", "content": "a"}]}
    for destination in (CHAT, RESPONSES):
        assert warnings(body, MESSAGES, destination) == "clamped=beginning of the answer:not continued"
    assert warnings(body, MESSAGES, CONVERSE) == ""


@pytest.mark.parametrize("silent", [{"content": ""}, {"content": None, "reasoning_content": "so"}])
@pytest.mark.parametrize("destination", [RESPONSES, MESSAGES, Api.GEMINI, CONVERSE])
def test_an_assistant_who_says_nothing_begins_no_answer(destination: Api, silent: Json) -> None:
    model = "claude-opus-4-6" if destination in (MESSAGES, CONVERSE) else "m"  # which begins its answers itself
    body = CHAT_BODY | {"messages": [*HI, {"role": "assistant", **silent}]}
    assert "beginning" not in warnings(body, CHAT, destination, model)
    assert sent(body, CHAT, destination, model) == sent(CHAT_BODY, CHAT, destination, model)


@pytest.mark.parametrize(
    ("client", "body"),
    [
        (CHAT, {"messages": [{"role": "assistant", "content": ""}]}),
        (MESSAGES, {"max_tokens": 99, "messages": [{"role": "assistant", "content": []}]}),
        (RESPONSES, {"input": [{"role": "assistant", "content": ""}]}),
        (Api.GEMINI, {"contents": [{"role": "model", "parts": [{"text": ""}]}]}),
    ],
)
@pytest.mark.parametrize("destination", [CHAT, RESPONSES, MESSAGES, Api.GEMINI, CONVERSE])
def test_a_conversation_in_which_nothing_is_said_is_refused(client: Api, body: Json, destination: Api) -> None:
    with pytest.raises(BadBody, match="messages: no"):
        sent({"model": "m", **body}, client, destination)


def test_a_speakers_name_is_told_where_it_makes_a_difference() -> None:
    body: Json = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "name": "ann", "content": "hi"}]}
    assert warnings(body, CHAT, MESSAGES) == "dropped=user.name"
    body["messages"] = [*body["messages"], {"role": "assistant", "name": "bot", "content": "yes"}, *body["messages"]]
    assert warnings(body, CHAT, MESSAGES) == "dropped=user.name;dropped=assistant.name"


def test_the_name_of_whoever_speaks_first_is_told_where_that_of_others_is() -> None:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "system", "name": "n", "content": "s"}, *HI]}
    assert warnings(body, CHAT, MESSAGES) == "dropped=system.name"
    assert warnings(body, CHAT, GEMINI) == ""

import json
import re
from typing import Any

import pytest

from kinference.shapes.lost import Untranslatable
from kinference.shapes.scan import BadBody
from kinference.shapes.translate import Way, translated
from kinference.vocabulary import Api, Loss
from tests.unit.shapes.conversions import (
    CHAT,
    COMPLETIONS,
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


def test_f2_a_temperature_out_of_range_is_clamped_and_told() -> None:
    assert told(temperature=1.5) == "clamped=temperature:1.5->1.0"
    assert chat_to_messages(temperature=1.5)["temperature"] == 1.0
    with pytest.raises(Untranslatable, match="temperature"):
        planned({**CHAT_BODY, "temperature": 1.5}, CHAT, MESSAGES, Loss.STRICT)
    with pytest.raises(BadBody, match="temperature"):
        chat_to_messages(temperature=-1)


def test_f5_json_is_asked_for_in_words_and_told() -> None:
    assert told(response_format={"type": "json_object"}) == "clamped=response_format.type:hint"
    assert "JSON" in chat_to_messages(response_format={"type": "json_object"})["system"][0]["text"]


def test_stops_within_the_limits() -> None:
    assert chat_to_messages(stop=["a", " ", ""])["stop_sequences"] == ["a"]
    assert messages_to_chat(stop_sequences=list("abcde"))["stop"] == list("abcd")
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": HI, "stop_sequences": list("abcde")}).encode()
    assert json.loads(translated(body, Way(MESSAGES, CHAT, "m", extends_chat=True))[0])["stop"] == list("abcde")


@pytest.mark.parametrize("destination", [CHAT, RESPONSES, MESSAGES, GEMINI, CONVERSE])
def test_a_stop_that_is_empty_is_none_and_no_loss(destination: Api) -> None:
    body = {"model": "m", "prompt": "hi", "max_tokens": 99, "stop": [""]}
    assert warnings(body, COMPLETIONS, destination) == ""
    assert sent(body, COMPLETIONS, destination) == sent(body | {"stop": None}, COMPLETIONS, destination)


@pytest.mark.parametrize(
    ("client", "body", "name"),
    [
        (CHAT, CHAT_BODY | {"stop": "a"}, "stop"),
        (COMPLETIONS, {"model": "m", "prompt": "hi", "stop": ["a", ""]}, "stop"),
        (MESSAGES, {"model": "m", "messages": HI, "max_tokens": 99, "stop_sequences": ["a"]}, "stop_sequences"),
        (
            GEMINI,
            {"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": {"stopSequences": ["a"]}},
            "generationConfig.stopSequences",
        ),
    ],
)
def test_stops_that_responses_has_no_word_for_are_told(client: Api, body: Any, name: str) -> None:
    assert f"dropped={name}" in warnings(body, client, RESPONSES).split(";")
    with pytest.raises(Untranslatable, match=re.escape(name)):
        planned(body, client, RESPONSES, Loss.STRICT)


@pytest.mark.parametrize(("asked", "got", "lost"), [(1, 16, "clamped=max_tokens:1->16"), (16, 16, "")])
def test_responses_is_asked_for_as_many_tokens_as_it_takes(asked: int, got: int, lost: str) -> None:
    body = {"model": "m", "max_tokens": asked, "messages": HI}
    assert sent(body, MESSAGES, RESPONSES)["max_output_tokens"] == got
    assert warnings(body, MESSAGES, RESPONSES) == lost
    assert sent(body, MESSAGES, CHAT)["max_tokens"] == asked


def test_google_takes_no_penalty_of_two() -> None:
    body = CHAT_BODY | {"frequency_penalty": 2, "presence_penalty": 1}
    config = sent(body, CHAT, GEMINI)["generationConfig"]
    assert (config["frequencyPenalty"], config["presencePenalty"]) == (1.99, 1)
    assert warnings(body, CHAT, GEMINI) == "clamped=frequency_penalty:2->1.99"
    assert warnings(CHAT_BODY | {"presence_penalty": 1.5}, CHAT, GEMINI) == ""


def test_google_gives_eight_answers_at_most() -> None:
    assert sent(CHAT_BODY | {"n": 8}, CHAT, GEMINI)["generationConfig"]["candidateCount"] == 8
    with pytest.raises(Untranslatable, match="n: this destination gives 8"):
        planned(CHAT_BODY | {"n": 9}, CHAT, GEMINI)


@pytest.mark.parametrize("destination", [RESPONSES, GEMINI])
def test_nobody_but_engines_tells_of_more_than_twenty_likely_tokens(destination: Api) -> None:
    body = CHAT_BODY | {"max_tokens": 99, "logprobs": True, "top_logprobs": 30}
    assert warnings(body, CHAT, destination) == "clamped=logprobs:30->20"
    made = sent(body, CHAT, destination)
    assert made.get("top_logprobs", made.get("generationConfig", {}).get("logprobs")) == 20
    assert warnings(body | {"top_logprobs": 20}, CHAT, destination) == ""


def test_googles_numbers_are_whole_where_others_ask_for_that() -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "generationConfig": {"topK": 40.0}}
    assert '"top_k": 40,' in json.dumps(sent(body, GEMINI, MESSAGES))


@pytest.mark.parametrize("model", ["claude-opus-4-7", "m"])
def test_sampling_is_dropped_for_models_that_refuse_it(model: str) -> None:
    lost = warnings({**CHAT_BODY, "temperature": 0.5}, CHAT, MESSAGES, model)
    assert lost == ("dropped=temperature" if model != "m" else "")


def test_openai_itself_is_not_told_what_was_thought() -> None:
    said = {"role": "assistant", "content": "a", "reasoning_content": "hm"}
    body = {"model": "m", "messages": [*HI, said, *HI]}
    for model, lost in (("gpt-5", "dropped=assistant.reasoning_content"), ("qwen3", "")):
        assert warnings(body, CHAT, CHAT, model) == lost
        assert ("reasoning_content" in sent(body, CHAT, CHAT, model)["messages"][1]) is (not lost)


def thinking(budget: int) -> Any:
    return {
        "model": "m",
        "max_tokens": 40_000,
        "messages": HI,
        "thinking": {"type": "enabled", "budget_tokens": budget},
    }


@pytest.mark.parametrize(
    ("model", "effort", "lost"),
    [
        ("gpt-5", "high", "clamped=output_config.effort:max->high"),
        ("gpt-5.2", "xhigh", "clamped=output_config.effort:max->xhigh"),
        ("gpt-5.6", "max", ""),
        ("qwen3", "high", "clamped=output_config.effort:max->high"),
        ("gpt-4o", None, "dropped=output_config.effort"),
    ],
)
@pytest.mark.parametrize("destination", [CHAT, RESPONSES])
def test_an_effort_that_the_model_takes_is_asked_of_it(
    destination: Api, model: str, effort: str | None, lost: str
) -> None:
    body = sent(thinking(31_999), MESSAGES, destination, model)
    asked = body.get("reasoning_effort") if destination is CHAT else body.get("reasoning", {}).get("effort")
    assert asked == effort
    assert warnings(thinking(31_999), MESSAGES, destination, model) == lost.replace("output_config.effort", "thinking")


def test_who_does_not_think_need_not_be_told_not_to() -> None:
    body = {"model": "m", "max_tokens": 9, "messages": HI, "thinking": {"type": "disabled"}}
    assert "reasoning_effort" not in sent(body, MESSAGES, CHAT, "gpt-4o")
    assert warnings(body, MESSAGES, CHAT, "gpt-4o") == ""


def test_bedrocks_other_makers_have_their_own_words_for_thinking() -> None:
    assert warnings(thinking(2000), MESSAGES, CONVERSE, "amazon.nova-pro-v1:0") == "dropped=thinking"


def test_penalties_that_a_newer_gemini_refuses_are_left_out_and_told() -> None:
    body = CHAT_BODY | {"frequency_penalty": 0.5, "presence_penalty": 0}
    assert sent(body, CHAT, GEMINI, "gemini-3-flash")["generationConfig"]["frequencyPenalty"] == 0.5
    assert not sent(body, CHAT, GEMINI, "gemini-3.5-flash")["generationConfig"].keys() & {
        "frequencyPenalty",
        "presencePenalty",
    }
    assert warnings(body, CHAT, GEMINI, "gemini-3.5-flash") == "dropped=frequency_penalty"
    assert warnings(CHAT_BODY | {"presence_penalty": 0}, CHAT, GEMINI, "gemini-3.5-flash") == ""


def test_a_seed_beyond_googles_range_is_brought_into_it_and_told() -> None:
    body = CHAT_BODY | {"seed": 2**40 + 7}
    assert sent(body, CHAT, GEMINI)["generationConfig"]["seed"] == 7
    assert warnings(body, CHAT, GEMINI) == "clamped=seed:1099511627783->7"
    assert warnings(CHAT_BODY | {"seed": -5}, CHAT, GEMINI) == ""


GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: x"}
PATCH = {"type": "custom", "name": "patch", "description": "d", "format": GRAMMAR}


def test_a_grammar_is_kept_by_openais_models_and_told_in_words_to_others() -> None:
    body = {"model": "m", "input": "hi", "tools": [PATCH]}
    (tool,) = sent(body, RESPONSES, CHAT, "gpt-5")["tools"]
    assert tool["custom"]["format"] == {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: x"}}
    assert warnings(body, RESPONSES, CHAT, "gpt-5") == ""
    assert sent({"model": "m", "messages": HI, "tools": [tool]}, CHAT, RESPONSES)["tools"] == [PATCH]
    for destination in (CHAT, MESSAGES, GEMINI, CONVERSE):
        assert "clamped=custom.format:description" in warnings(body, RESPONSES, destination, "qwen")
        assert "lark grammar:\\nstart: x" in str(
            sent(body, RESPONSES, destination, "qwen")["tools" if destination is not CONVERSE else "toolConfig"]
        )


def test_who_has_functions_alone_is_given_free_form_tools_as_such() -> None:
    body = {"model": "m", "input": "hi", "tools": [PATCH]}
    assert [tool["type"] for tool in sent(body, RESPONSES, CHAT, "qwen")["tools"]] == ["function"]
    assert [tool["type"] for tool in sent(body, RESPONSES, CHAT, "gpt-5")["tools"]] == ["custom"]
    assert [tool["type"] for tool in sent(body, RESPONSES, Api.AZURE_OPENAI, "mine")["tools"]] == ["custom"]


def test_verbosity_is_openais_own() -> None:
    body = {"model": "m", "input": "hi", "text": {"verbosity": "low"}}
    assert sent(body, RESPONSES, CHAT, "gpt-5")["verbosity"] == "low"
    assert warnings(body, RESPONSES, CHAT, "qwen") == "dropped=text.verbosity"


def heard(mime: str) -> Any:
    return {"contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": mime, "data": "AAAA"}}]}]}


@pytest.mark.parametrize(("mime", "form"), [("audio/mpeg", "mp3"), ("audio/x-wav", "wav"), ("audio/wav", "wav")])
def test_audio_has_openais_names(mime: str, form: str) -> None:
    (part,) = sent(heard(mime), GEMINI, CHAT, "gpt-4o-audio-preview")["messages"][0]["content"]
    assert part["input_audio"]["format"] == form


def test_audio_that_openai_does_not_take_goes_to_others_alone() -> None:
    with pytest.raises(Untranslatable, match="WAV and MP3"):
        planned(heard("audio/ogg"), GEMINI, CHAT, model="gpt-4o-audio-preview")
    assert sent(heard("audio/ogg"), GEMINI, CHAT, "qwen-omni")


@pytest.mark.parametrize(
    ("tier", "to_messages", "to_converse", "told"),
    [
        ("priority", "auto", "priority", "clamped=service_tier:priority->auto"),
        ("flex", "standard_only", "flex", "clamped=service_tier:flex->standard_only"),
        ("scale", "auto", "reserved", "clamped=service_tier:scale->auto"),
        ("default", "standard_only", "default", ""),
        ("auto", "auto", "default", ""),
    ],
)
def test_e16_a_tier_that_claude_has_not_is_the_nearest_and_told(
    tier: str, to_messages: str, to_converse: str, told: str
) -> None:
    body = CHAT_BODY | {"service_tier": tier, "max_tokens": 9}
    assert sent(body, CHAT, MESSAGES)["service_tier"] == to_messages
    assert sent(body, CHAT, CONVERSE)["serviceTier"] == {"type": to_converse}
    assert warnings(body, CHAT, MESSAGES) == told


def test_e16_an_address_for_a_users_id_is_left_out_and_told() -> None:
    body = CHAT_BODY | {"user": "a@b.example", "max_tokens": 9}
    assert "metadata" not in sent(body, CHAT, MESSAGES)
    assert warnings(body, CHAT, MESSAGES) == "dropped=user"
    assert warnings(body | {"user": "u1"}, CHAT, MESSAGES) == ""
    for number in ("+49 (30) 123-456", "555-123-4567", "(555) 123.4567"):
        assert warnings(body | {"user": number}, CHAT, MESSAGES) == "dropped=user"
    for name, got in (("u" * 256, "u" * 256), ("1234567", "1234567")):
        assert sent(body | {"user": name}, CHAT, MESSAGES)["metadata"] == {"user_id": got}
    assert len(sent(body | {"user": "u" * 257}, CHAT, MESSAGES)["metadata"]["user_id"]) == 64


@pytest.mark.parametrize("destination", [CHAT, RESPONSES, MESSAGES, GEMINI, CONVERSE])
def test_what_changes_nothing_is_no_loss_and_not_said_where_it_is_refused(destination: Api) -> None:
    neutral = {
        "top_k": -1,
        "min_p": 0,
        "repetition_penalty": 1.0,
        "top_p": 1.0,
        "temperature": 1,
        "verbosity": "medium",
    }
    body = {"model": "m", "messages": HI, "max_tokens": 99, **neutral}
    assert warnings(body, CHAT, destination, "claude-sonnet-4-5") == ""
    assert "-1" not in json.dumps(sent(body, CHAT, destination))
    assert "min_p" in warnings({**body, "min_p": 0.1}, CHAT, destination)


@pytest.mark.parametrize("destination", [MESSAGES, CONVERSE])
def test_who_cannot_be_made_to_call_is_left_to_choose_and_that_is_told(destination: Api) -> None:
    forced = {"type": "function", "function": {"name": "f"}}
    some = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [forced]}}
    other = {"type": "function", "function": {"name": "g"}}
    model = "anthropic.claude-opus-5-5"
    for choice, told in (("required", "any"), (forced, "tool"), (some, "any")):
        body = CHAT_BODY | {"tools": [TOOL, other], "tool_choice": choice}
        made = sent(body, CHAT, destination, model)
        tools = made["tools"] if destination is MESSAGES else made["toolConfig"]["tools"]
        auto: Any = {"type": "auto"} if destination is MESSAGES else {"auto": {}}
        assert (made.get("tool_choice") or made["toolConfig"]["toolChoice"]) == auto
        assert len(tools) == (1 if choice is some else 2)
        lost = "tool_choice.allowed_tools" if choice is some else "tool_choice"
        assert warnings(body, CHAT, destination, model).startswith(f"clamped=tool_choice:{told}->auto"), lost


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_claude_is_shown_fewer_tools_than_there_are_and_that_is_told(mode: str) -> None:
    """Its cache of the others is lost."""
    f, g = ({"type": "function", "function": {"name": name}} for name in "fg")
    tools = {
        "tools": [TOOL, g],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [f]}},
    }
    body = CHAT_BODY | tools
    assert [tool["name"] for tool in sent(body, CHAT, MESSAGES)["tools"]] == ["f"]
    assert warnings(body, CHAT, MESSAGES) == "clamped=tool_choice.allowed_tools:2->1"
    with pytest.raises(Untranslatable, match=r"tool_choice\.allowed_tools"):
        planned(body, CHAT, MESSAGES, Loss.STRICT)
    assert warnings(body | {"max_tokens": 99}, CHAT, RESPONSES) == ""
    assert warnings(body | {"tools": [TOOL]}, CHAT, MESSAGES) == ""


def test_who_always_thinks_is_not_told_to_stop_and_that_is_told() -> None:
    body = CHAT_BODY | {"reasoning_effort": "none"}
    assert "thinking" not in sent(body, CHAT, MESSAGES, "claude-fable-5")
    assert warnings(body, CHAT, MESSAGES, "claude-fable-5") == "dropped=reasoning_effort"
    assert sent(body, CHAT, MESSAGES, "claude-opus-5")["thinking"] == {"type": "disabled"}

import pytest
from openai.types.completion_create_params import CompletionCreateParamsBase

from kinference.shapes.ir import Text
from kinference.shapes.lost import Untranslatable
from kinference.shapes.openai_completions.request import FIELDS, parse_request
from kinference.shapes.scan import BadBody
from tests.unit.shapes.conversions import CHAT, COMPLETIONS, MESSAGES, sent
from tests.unit.shapes.sdk import unknown


def test_no_field_of_the_sdk_is_unknown() -> None:
    assert unknown(FIELDS, {"": [CompletionCreateParamsBase]}) == []


@pytest.mark.parametrize("prompt", ["hi", ["hi"]])
def test_the_prompt_is_what_the_user_says(prompt: object) -> None:
    assert parse_request({"prompt": prompt}).turns[0].blocks == (Text("hi"),)


def test_the_cap_that_this_api_has_by_itself_is_kept() -> None:
    body = {"model": "m", "prompt": "hi", "seed": 1, "stop": ["a"]}
    assert sent(body, COMPLETIONS, MESSAGES)["max_tokens"] == 16
    assert sent(body | {"max_tokens": 5}, COMPLETIONS, CHAT) == {
        "model": "m",
        "max_tokens": 5,
        "seed": 1,
        "stop": ["a"],
        "messages": [{"role": "user", "content": "hi"}],
    }


@pytest.mark.parametrize("members", [{"prompt": ["a", "b"]}, {"prompt": [1, 2]}, {"echo": True}, {"suffix": "x"}])
def test_what_has_no_meaning_in_a_conversation_is_refused(members: dict[str, object]) -> None:
    with pytest.raises(Untranslatable):
        parse_request({"prompt": "hi"} | members)


def test_a_list_of_no_prompts_is_an_empty_prompt() -> None:
    with pytest.raises(BadBody, match="prompt: empty"):
        parse_request({"prompt": []})


@pytest.mark.parametrize("prompt", [None, "", 7, [7]])
def test_what_is_no_prompt_is_told(prompt: object) -> None:
    with pytest.raises(BadBody, match="prompt"):
        parse_request({"prompt": prompt})

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinference.shapes.foreign_thoughts import without_foreign_thoughts
from kinference.shapes.ir import Reasoning, Sealed
from kinference.shapes.seals import NO_SIGNATURE, in_base64, sealed
from kinference.vocabulary import Api
from tests.unit.shapes.conversions import CHAT, GEMINI, HI, MESSAGES, RESPONSES

SEAL = sealed(Sealed("d", GEMINI)) or ""
THOUGHT = {"type": "thinking", "thinking": "r", "signature": "theirs"}
SAID = {"type": "text", "text": 'of kinference. and "signature":""'}


def taken(body: Any, api: Api, *, at_provider: bool = True) -> Any:
    return json.loads(without_foreign_thoughts(json.dumps(body).encode(), api, at_provider=at_provider))


def spoken(*blocks: Any) -> Any:
    return {"model": "m", "messages": [*HI, {"role": "assistant", "content": list(blocks)}, *HI]}


@pytest.mark.parametrize(
    "block",
    [
        {"type": "redacted_thinking", "data": SEAL},
        {"type": "thinking", "thinking": "r", "signature": sealed(Reasoning("r", "s", RESPONSES))},
        {"type": "thinking", "thinking": "unsigned", "signature": ""},
        {"type": "thinking", "thinking": "unsigned \ud83d", "signature": ""},
    ],
)
def test_e10_anthropic_gets_its_own_thoughts_alone(block: Any) -> None:
    assert taken(spoken(THOUGHT, block, SAID), MESSAGES) == spoken(THOUGHT, SAID)
    assert taken(spoken(block), MESSAGES) == {"model": "m", "messages": [*HI, *HI]}


def test_an_engine_keeps_thoughts_that_nobody_signed() -> None:
    unsigned = {"type": "thinking", "thinking": "unsigned", "signature": ""}
    body = spoken(unsigned, {"type": "redacted_thinking", "data": SEAL}, SAID)
    assert taken(body, MESSAGES, at_provider=False) == spoken(unsigned, SAID)


def test_e10_openai_gets_no_item_that_was_sealed_for_another() -> None:
    own = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}
    items = [*HI, own, {"type": "reasoning", "summary": [], "encrypted_content": SEAL}, *HI]
    assert taken({"input": items, "model": "m"}, RESPONSES) == {"input": [*HI, own, *HI], "model": "m"}


@pytest.mark.parametrize("name", ["thoughtSignature", "thought_signature"])
def test_e10_gemini_gets_the_placeholder_for_what_was_sealed_for_another(name: str) -> None:
    def parts(signature: str) -> Any:
        return {"contents": [{"role": "model", "parts": [{"text": "", "thought": True, name: signature}]}]}

    for issuer in (MESSAGES, RESPONSES):
        seal = sealed(Reasoning("r", "s", issuer)) or ""
        assert taken(parts(in_base64(seal)), GEMINI) == parts(NO_SIGNATURE)
    assert taken(parts("Z2VtaW5p"), GEMINI) == parts("Z2VtaW5p")


@pytest.mark.parametrize(
    ("api", "body"),
    [
        (MESSAGES, spoken(THOUGHT, SAID)),
        (MESSAGES, {"messages": f"{SEAL}"}),
        (MESSAGES, {"messages": [f"{SEAL}", 1, {"content": SEAL}, {"content": [SEAL, {"type": 1, "data": SEAL}]}]}),
        (RESPONSES, {"input": f"{SEAL} kinference."}),
        (CHAT, {"messages": [{"role": "user", "content": SEAL}]}),
        (GEMINI, {"contents": [{"parts": [{"text": in_base64(SEAL)}]}]}),
    ],
)
def test_what_has_none_stays_as_it_is(api: Api, body: Any) -> None:
    raw = json.dumps(body).encode()
    assert without_foreign_thoughts(raw, api, at_provider=True) is raw


def test_e10_a_chat_goes_on_without_what_was_sealed_for_another() -> None:
    def said(**members: Any) -> Any:
        return {"messages": [*HI, {"role": "assistant", "content": "a", **members}, *HI]}

    sealed_block = {"type": "redacted_thinking", "data": SEAL}
    assert taken(said(thinking_blocks=[sealed_block]), CHAT) == said()
    assert taken(said(thinking_blocks=[THOUGHT, sealed_block], name="n"), CHAT) == said(
        thinking_blocks=[THOUGHT], name="n"
    )


IN_BASE64 = in_base64(SEAL)
KEYS = st.sampled_from(
    [
        "messages",
        "input",
        "content",
        "type",
        "data",
        "signature",
        "encrypted_content",
        "thinking_blocks",
        "thoughtSignature",
    ]
)
VALUES = st.recursive(
    st.none() | st.sampled_from([1, SEAL, IN_BASE64, "", "thinking", "redacted_thinking", "reasoning", "a\ud83d"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=15,
)


@given(body=st.dictionaries(KEYS, VALUES, max_size=4), api=st.sampled_from(Api), at_provider=st.booleans())
def test_whatever_a_body_is_it_stays_json_and_is_done_after_one_time(body: Any, api: Api, at_provider: bool) -> None:
    once = without_foreign_thoughts(json.dumps(body).encode(), api, at_provider=at_provider)
    again = without_foreign_thoughts(once, api, at_provider=at_provider)
    assert json.loads(again) == json.loads(once)

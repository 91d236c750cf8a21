import json
from typing import Any

import pytest
from openai._models import validate_type
from openai.types.responses import ResponseStreamEvent

from kinference.shapes.ir import Searched, WebSearch
from kinference.shapes.lost import Untranslatable, header
from kinference.shapes.way_back import losses_of, read_answer
from kinference.shapes.web_search import is_search, made_of_messages, to_messages
from kinference.vocabulary import Api, Loss
from tests.unit.shapes.conversions import (
    CHAT,
    CONVERSE,
    GEMINI,
    HI,
    MESSAGES,
    RESPONSES,
    TOOL,
    Stream,
    a_plan,
    answered,
    named,
    planned,
    sent,
    warnings,
)

PLACE = {"country": "DE", "city": "Berlin"}
LOCATION = {"type": "approximate", **PLACE}
MODELS = {CHAT: "gpt-4o-search-preview", GEMINI: "gemini-2.5-pro"}

ASKING: dict[Api, Any] = {
    CHAT: {
        "model": "m",
        "messages": HI,
        "web_search_options": {"user_location": {"type": "approximate", "approximate": PLACE}},
    },
    RESPONSES: {"model": "m", "input": "hi", "tools": [{"type": "web_search_preview", "user_location": LOCATION}]},
    MESSAGES: {
        "model": "m",
        "max_tokens": 99,
        "messages": HI,
        "tools": [{"type": "web_search_20260209", "name": "web_search", "user_location": LOCATION}],
    },
    GEMINI: {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": [{"google_search": {}}]},
}
ASKED: dict[Api, Any] = {
    CHAT: ("web_search_options", {"user_location": {"type": "approximate", "approximate": PLACE}}),
    RESPONSES: ("tools", [{"type": "web_search", "user_location": LOCATION}]),
    MESSAGES: ("tools", [{"type": "web_search_20250305", "name": "web_search", "user_location": LOCATION}]),
    GEMINI: ("tools", [{"googleSearch": {}}]),
}


def tools(api: Api, **members: Any) -> Any:
    """A body that asks for a search with these members."""
    kind = "web_search" if api is RESPONSES else "web_search_20250305"
    return {**ASKING[api], "tools": [{"type": kind, "name": "web_search", **members}]}


@pytest.mark.parametrize("destination", [CHAT, RESPONSES, MESSAGES, GEMINI])
@pytest.mark.parametrize("client", [CHAT, RESPONSES, MESSAGES])
def test_a_search_is_asked_for_in_the_destinations_words(client: Api, destination: Api) -> None:
    name, value = ASKED[destination]
    assert sent(ASKING[client], client, destination, MODELS.get(destination, "m"))[name] == value


@pytest.mark.parametrize("destination", [CHAT, RESPONSES, MESSAGES, GEMINI])
def test_googles_search_becomes_the_others(destination: Api) -> None:
    name, _ = ASKED[destination]
    [found] = [sent(ASKING[GEMINI], GEMINI, destination, MODELS.get(destination, "m"))[name]]
    assert "user_location" not in str(found)


@pytest.mark.parametrize("client", ASKING)
def test_a_destination_that_cannot_search_is_not_asked(client: Api) -> None:
    for destination, model in ((CONVERSE, "amazon.nova-pro"), (CHAT, "gpt-5"), (CHAT, "qwen3-search")):
        with pytest.raises(Untranslatable, match=r"search|Search"):
            planned(ASKING[client], client, destination, model=model)


def test_a_search_stays_within_its_sites_or_is_not_made() -> None:
    kept = sent(tools(RESPONSES, filters={"allowed_domains": ["a.org"]}), RESPONSES, MESSAGES)["tools"]
    assert kept[0]["allowed_domains"] == ["a.org"]
    assert sent(tools(MESSAGES, allowed_domains=["a.org"]), MESSAGES, RESPONSES)["tools"] == [
        {"type": "web_search", "filters": {"allowed_domains": ["a.org"]}}
    ]
    for destination in (GEMINI, CHAT):
        with pytest.raises(Untranslatable, match="sites"):
            planned(tools(MESSAGES, allowed_domains=["a.org"]), MESSAGES, destination, model=MODELS[destination])
    with pytest.raises(Untranslatable, match="sites"):
        planned(tools(MESSAGES, blocked_domains=["a.org"]), MESSAGES, RESPONSES)
    assert to_messages(WebSearch(blocked=("a.org",)))["blocked_domains"] == ["a.org"]


def test_how_a_search_goes_about_it_is_told_where_it_is_lost() -> None:
    assert warnings(tools(MESSAGES, max_uses=3), MESSAGES, RESPONSES) == "clamped=web_search.type:max_uses"
    assert warnings(tools(RESPONSES, search_context_size="low"), RESPONSES, MESSAGES).startswith(
        "clamped=web_search.type:search_context_size"
    )
    assert "dropped=web_search.depth" in warnings(tools(RESPONSES, depth=2), RESPONSES, MESSAGES)
    assert sent(tools(MESSAGES, max_uses=3), MESSAGES, MESSAGES)["tools"][0]["max_uses"] == 3


@pytest.mark.parametrize("destination", [CHAT, MESSAGES, GEMINI, CONVERSE])
def test_a_search_of_what_a_provider_has_stored_is_left_out_and_told(destination: Api) -> None:
    body = tools(RESPONSES, external_web_access=False)
    assert warnings(body, RESPONSES, destination).startswith("dropped=web_search.external_web_access")
    assert "search" not in str(sent(body, RESPONSES, destination))
    with pytest.raises(Untranslatable, match="external_web_access"):
        planned(body, RESPONSES, destination, Loss.STRICT)


def test_functions_are_offered_beside_a_search_but_not_by_gemini() -> None:
    body = {**ASKING[CHAT], "tools": [TOOL]}
    assert [tool["name"] for tool in sent(body, CHAT, MESSAGES)["tools"]] == ["f", "web_search"]
    assert [tool["type"] for tool in sent(body, CHAT, RESPONSES)["tools"]] == ["function", "web_search"]
    with pytest.raises(Untranslatable, match="functions"):
        planned(body, CHAT, GEMINI, model="gemini-2.5-pro")


@pytest.mark.parametrize("choice", [{"type": "tool", "name": "web_search"}, {"type": "any"}])
def test_nobody_else_can_be_made_to_search(choice: Any) -> None:
    with pytest.raises(Untranslatable, match="tool_choice"):
        planned({**ASKING[MESSAGES], "tool_choice": choice}, MESSAGES, RESPONSES)
    with pytest.raises(Untranslatable, match="tool_choice"):
        planned({**ASKING[RESPONSES], "tool_choice": "required"}, RESPONSES, MESSAGES)


PAGE = {"type": "web_search_result", "url": "https://a.example", "title": "A", "encrypted_content": "x"}
SEARCHING: list[Any] = [
    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
    {"type": "web_search_tool_result", "tool_use_id": "s", "content": [PAGE]},
    {"type": "text", "text": "so"},
]


@pytest.mark.parametrize("destination", [CHAT, RESPONSES, GEMINI, CONVERSE])
def test_earlier_searches_are_told_in_words(destination: Api) -> None:
    body = {"model": "m", "max_tokens": 99, "messages": [*HI, {"role": "assistant", "content": SEARCHING}, *HI]}
    assert warnings(body, MESSAGES, destination) == ""
    made = json.dumps(sent(body, MESSAGES, destination))
    assert made.index("[searched the web for: q]") < made.index("[found]\\nA https://a.example") < made.index("so")


def test_earlier_searches_of_responses_are_told_in_words() -> None:
    asked = {
        "type": "search",
        "queries": ["a", "b"],
        "query": "a",
        "sources": [{"type": "url", "url": "https://b.example"}],
    }
    opened = {"type": "open_page", "url": "https://c.example"}
    items = [
        {"role": "user", "content": "look"},
        *(
            {"type": "web_search_call", "id": "w", "status": "completed", "action": action}
            for action in (asked, opened)
        ),
        {"type": "web_search_call", "id": "w", "status": "completed"},
        {"role": "user", "content": "q"},
    ]
    said, _ = sent({"model": "m", "input": items}, RESPONSES, MESSAGES)["messages"][-2:]
    assert [block["text"] for block in said["content"]] == [
        "[searched the web for: a; b]",
        "[found]\nhttps://b.example",
        "[searched the web for: https://c.example]",
    ]


def test_a_search_that_found_nothing_and_had_no_words_leaves_nothing() -> None:
    items = [{"type": "web_search_call", "id": "w", "status": "completed"}, {"role": "user", "content": "q"}]
    assert sent({"model": "m", "input": items}, RESPONSES, CHAT)["messages"] == [{"role": "user", "content": "q"}]
    failed = {"type": "web_search_tool_result", "content": {"type": "web_search_tool_result_error"}}
    assert made_of_messages(failed) == Searched()
    assert made_of_messages({"type": "server_tool_use", "name": "web_fetch"}) is None


def test_a_search_of_an_answer_is_an_item_of_responses_whole_and_streamed() -> None:
    whole = {"id": "msg_1", "model": "up", "content": SEARCHING, "stop_reason": "end_turn"}
    called, said = answered(whole, RESPONSES, MESSAGES)["output"]
    assert called | {"id": ""} == {
        "id": "",
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "query": "q", "queries": ["q"]},
    }
    assert said["content"][0]["text"] == "so"
    events: list[Any] = [{"type": "message_start", "message": {"id": "msg_1"}}]
    for at, block in enumerate(SEARCHING):
        begun = block | ({"input": {}} if "input" in block else {})
        events.append({"type": "content_block_start", "index": at, "content_block": begun})
        if "input" in block:
            given = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            events.append({"type": "content_block_delta", "index": at, "delta": given})
        events.append({"type": "content_block_stop", "index": at})
    ended = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
    stream = Stream(RESPONSES, MESSAGES).feed(named(*events, *ended))
    (done,) = [one["item"] for one in stream.events if one["type"] == "response.output_item.done"][:1]
    assert done == called | {"id": done["id"]}
    assert [one for one in stream.types if "web_search_call" in one] == [
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
        "response.web_search_call.completed",
    ]
    kind: Any = ResponseStreamEvent
    assert all(validate_type(type_=kind, value=event) for event in stream.events)


@pytest.mark.parametrize("client", [CHAT, MESSAGES, GEMINI])
def test_a_search_of_an_answer_is_told_lost_where_it_has_no_form(client: Api) -> None:
    item = {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "q"}}
    said = {"type": "message", "content": [{"type": "output_text", "text": "so"}]}
    back = a_plan(client, RESPONSES).back
    answer = read_answer(back, json.dumps({"status": "completed", "output": [item, said]}).encode())
    assert header(losses_of(back, answer)) == "dropped=answer.web_search"
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    created = {"type": "response.created", "response": {"id": "resp_1"}}
    text = {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "so"}
    finished = {"type": "response.completed", "response": {"status": "completed"}}
    stream = Stream(client, RESPONSES).feed(named(created, done, text, finished))
    assert b"dropped=answer.web_search" in stream.raw


def test_a_search_is_one_of_any_version() -> None:
    assert all(is_search({"type": kind}) for kind in ("web_search", "web_search_preview", "web_search_20250305"))
    assert not any(is_search({"type": kind}) for kind in ("web_searcher", "function", None, 7))

"""What routing learns of a body."""

import json
from typing import Any

import pytest

from kinference.shapes.detect import (
    MODEL_CHARS_MAX,
    SESSION_CHARS_MAX,
    Parsed,
    api_of_path,
    asked_otherwise,
    parse,
    stream_usage,
)
from kinference.shapes.scan import BadBody
from kinference.vocabulary import Api, Need, StreamUsage

HELLO = [{"role": "user", "content": "hello"}]
CHAT = "/v1/chat/completions"


def body(**fields: Any) -> bytes:
    return json.dumps({"model": "m", **fields}, ensure_ascii=False).encode()


def chat(**fields: Any) -> Parsed:
    return parse(body(messages=HELLO, **fields), CHAT)


@pytest.mark.parametrize(
    ("path", "api"),
    [
        ("/v1/chat/completions", Api.OPENAI_CHAT),
        ("/v1/completions", Api.OPENAI_COMPLETIONS),
        ("/v1/responses", Api.OPENAI_RESPONSES),
        ("/v1/embeddings", Api.OPENAI_EMBEDDINGS),
        ("/v1/messages", Api.ANTHROPIC_MESSAGES),
        ("/v1/messages/count_tokens", Api.ANTHROPIC_MESSAGES),
        ("/openai/v1/chat/completions?api-version=1", Api.OPENAI_CHAT),
        ("/openai/deployments/d/embeddings/", Api.OPENAI_EMBEDDINGS),
        ("/v1/messages/batches", None),
        ("/v1/models", None),
        ("/x?y=/v1/messages", None),
        ("", None),
    ],
)
def test_a_path_names_its_api(path: str, api: Api | None) -> None:
    assert api_of_path(path) is api


@pytest.mark.parametrize(
    ("fields", "api"),
    [
        ({"messages": HELLO}, Api.OPENAI_CHAT),
        ({"messages": HELLO, "max_tokens": 5}, Api.OPENAI_CHAT),
        ({"messages": HELLO, "thinking": {"type": "enabled"}}, Api.OPENAI_CHAT),
        ({"messages": HELLO, "tools": [{"type": "function", "function": {"name": "f"}}]}, Api.OPENAI_CHAT),
        ({"messages": HELLO, "system": "be kind"}, Api.ANTHROPIC_MESSAGES),
        ({"messages": HELLO, "anthropic_version": "bedrock-2023-05-31"}, Api.ANTHROPIC_MESSAGES),
        ({"messages": HELLO, "stop_sequences": ["x"]}, Api.ANTHROPIC_MESSAGES),
        ({"messages": HELLO, "tools": [{"name": "f", "input_schema": {}}]}, Api.ANTHROPIC_MESSAGES),
        ({"messages": HELLO, "thinking": {"type": "enabled", "budget_tokens": 9}}, Api.ANTHROPIC_MESSAGES),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}], "max_tokens": 5},
            Api.ANTHROPIC_MESSAGES,
        ),
        ({"prompt": "x"}, Api.OPENAI_COMPLETIONS),
        ({"input": "x"}, Api.OPENAI_EMBEDDINGS),
        ({"input": ["x", "y"]}, Api.OPENAI_EMBEDDINGS),
        ({"input": [1, 2]}, Api.OPENAI_EMBEDDINGS),
        ({"input": [[1], [2]]}, Api.OPENAI_EMBEDDINGS),
        ({"input": "x", "encoding_format": "base64", "user": "u"}, Api.OPENAI_EMBEDDINGS),
        ({"input": "x", "dimensions": 8}, Api.OPENAI_EMBEDDINGS),
        ({"input": "x", "stream": True}, Api.OPENAI_RESPONSES),
        ({"input": "x", "instructions": "be kind"}, Api.OPENAI_RESPONSES),
        ({"input": "x", "max_output_tokens": 5}, Api.OPENAI_RESPONSES),
        ({"input": HELLO}, Api.OPENAI_RESPONSES),
        ({"previous_response_id": "resp_1"}, Api.OPENAI_RESPONSES),
    ],
)
def test_a_body_shows_its_api_when_no_path_does(fields: dict[str, Any], api: Api) -> None:
    assert parse(body(**fields)).api is api


def test_a_known_path_settles_what_the_body_leaves_open() -> None:
    assert parse(body(input="x"), "/v1/responses").api is Api.OPENAI_RESPONSES
    assert parse(body(messages=HELLO), "/v1/messages").api is Api.ANTHROPIC_MESSAGES
    assert parse(body(messages=HELLO, system="x"), CHAT).api is Api.OPENAI_CHAT


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"", "not JSON"),
        (b'{"model":"m","messages":[{"role"', "not JSON"),
        (b"\xef\xbb\xbf" + body(messages=HELLO), "not JSON"),
        (body(messages=HELLO, temperature=float("nan")), "not JSON"),
        (b'"text"', "Expected `object`"),
        (b"[1]", "Expected `object`"),
        (body(messages=HELLO).replace(b"hello", b"\xff"), "not UTF-8"),
        (body(messages=HELLO, unknown="@").replace(b"@", b"\xc3"), "not UTF-8"),
        (b'{"messages":[1]}', "model: missing"),
        (b'{"model":" \\t","messages":[1]}', "model: missing"),
        (b'{"model":7,"messages":[1]}', r"\$\.model"),
        (b'{"model":null,"messages":[1]}', r"\$\.model"),
        (body(model="m" * (MODEL_CHARS_MAX + 1), messages=HELLO), "model: longer"),
        (body(), "no prompt"),
        (body(messages=None), "no prompt"),
        (body(messages=[]), "messages: empty"),
        (b'{"model":"m","messages":[ \n]}', "messages: empty"),
        (body(messages="hello"), "messages: wrong type"),
        (body(messages={"role": "user"}), "messages: wrong type"),
        (body(prompt=""), "prompt: empty"),
        (body(prompt=7), "prompt: wrong type"),
        (body(input=[]), "input: empty"),
        (body(messages=HELLO, stream="yes"), r"\$\.stream"),
        (body(messages=HELLO, x=json.loads("[" * 129 + "]" * 129)), "nests deeper"),
        (b'{"model":"m","messages":' + b"[" * 10_000 + b"]" * 10_000 + b"}", "nests deeper"),
    ],
)
def test_a_body_that_cannot_be_routed_is_refused_with_the_reason(text: bytes, complaint: str) -> None:
    with pytest.raises(BadBody, match=complaint):
        parse(text)


@pytest.mark.parametrize(
    ("path", "complaint"),
    [(CHAT, "messages: missing"), ("/v1/responses", "input: missing"), ("/v1/completions", "prompt: missing")],
)
def test_a_path_tells_which_prompt_is_missing(path: str, complaint: str) -> None:
    with pytest.raises(BadBody, match=complaint):
        parse(body(), path)


def test_a_refusal_never_quotes_the_body() -> None:
    for text in (
        b'{"secret":"secret","model":1}',
        b'{"model":"secret" "secret"}',
        b'{"model":"m","messages":"secret"}',
    ):
        with pytest.raises(BadBody) as caught:
            parse(text)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "odd",
    [
        {"max_tokens": None},
        {"max_tokens": "many"},
        {"max_tokens": -1},
        {"max_tokens": 10**30},
        {"tools": None},
        {"tools": "none"},
        {"metadata": "text"},
        {"metadata": {"user_id": 5}},
        {"stream_options": 5},
        {"stream_options": {"include_usage": "yes"}},
        {"stream": None},
        {"user": {"id": 1}},
        {"response_format": 7},
        {"text": []},
        {"conversation": 5},
        {"temperature": 10**400},
        {"unheard_of": [{"a": {}}]},
    ],
)
def test_a_member_of_an_odd_type_that_routing_can_do_without_refuses_nothing(odd: dict[str, Any]) -> None:
    parsed = chat(**odd)
    assert (parsed.model, parsed.output_tokens, parsed.session) == ("m", None, "")


def test_numbers_beyond_any_type_are_let_through() -> None:
    assert parse(b'{"model":"m","messages":[1e400],"x":-1e-999,"seed":' + b"9" * 5000 + b"}", CHAT).model == "m"


def test_the_last_duplicate_counts() -> None:
    parsed = parse(b'{"model":"a","messages":[1],"messages":[2],"\\u006dodel":"b"}', CHAT)
    assert (parsed.model, parsed.prompt) == ("b", (b"2",))


def test_a_lone_surrogate_is_no_fault() -> None:
    text = rb'{"model":"m","user":"\ud83d","messages":[{"role":"user","content":"cut \ud83d"}]}'
    assert parse(text, CHAT).prompt == (rb'{"role":"user","content":"cut \ufffd"}',)


def test_the_prompt_is_in_the_order_a_template_renders_it() -> None:
    tools = [{"name": "f", "input_schema": {}}]
    anthropic = parse(body(messages=HELLO, system="S", tools=tools), "/v1/messages")
    hello = json.dumps(HELLO)[1:-1].encode()
    assert anthropic.prompt == (json.dumps(tools).encode(), b'"S"', hello)
    responses = parse(body(input="hi", instructions="I", tools=tools), "/v1/responses")
    assert responses.prompt == (json.dumps(tools).encode(), b'"I"', b"hi")
    assert anthropic.prompt_bytes == len(b"".join(anthropic.prompt))


@pytest.mark.parametrize(
    ("path", "first", "second"),
    [
        (CHAT, {"messages": HELLO}, {"messages": [*HELLO, {"role": "assistant", "content": "hi"}]}),
        ("/v1/completions", {"prompt": "one"}, {"prompt": "one two"}),
        ("/v1/completions", {"prompt": [1, 2]}, {"prompt": [1, 2, 3]}),
        ("/v1/responses", {"input": HELLO}, {"input": [*HELLO, *HELLO]}),
        ("/v1/embeddings", {"messages": HELLO}, {"messages": [*HELLO, *HELLO]}),
        (
            "/v1/messages",
            {"messages": [{"role": "user", "content": [{"type": "text", "cache_control": {"type": "ephemeral"}}]}]},
            {"messages": [{"role": "user", "content": [{"type": "text"}]}, *HELLO]},
        ),
    ],
)
def test_each_turn_is_a_prefix_of_the_next(path: str, first: dict[str, Any], second: dict[str, Any]) -> None:
    earlier, later = (b"".join(parse(body(**fields), path).prompt) for fields in (first, second))
    assert earlier
    assert later.startswith(earlier)
    assert later != earlier


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/v1/chat/completions", {"type": "image_url", "image_url": {"url": "data:image/png;base64,PHOTO"}}),
        ("/v1/messages", {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "PHOTO"}}),
        ("/v1/responses", {"type": "input_image", "image_url": "data:image/png;base64,PHOTO"}),
    ],
)
def test_a_photo_counts_as_a_picture_and_not_as_a_million_characters_of_text(path: str, part: dict[str, Any]) -> None:
    said = [{"role": "user", "content": [part]}]
    body = json.dumps({"model": "m", "messages": said, "input": said, "max_tokens": 5})
    parsed = parse(body.replace("PHOTO", "A" * 1_500_000).encode(), path)
    assert 4_096 < parsed.prompt_bytes < 4_500
    assert parsed.needs == {Need.VISION}


def test_a_prompt_held_by_the_engine_may_be_left_out() -> None:
    assert parse(body(conversation={"id": "c"}), "/v1/responses").prompt == ()


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        ({}, None),
        ({"max_tokens": 5}, 5),
        ({"max_tokens": 5, "max_completion_tokens": 7}, 7),
        ({"max_output_tokens": 9}, 9),
        ({"max_tokens": 0}, None),
    ],
)
def test_the_wanted_output_is_read(fields: dict[str, Any], tokens: int | None) -> None:
    assert chat(**fields).output_tokens == tokens


def test_streaming_is_read() -> None:
    assert not chat().streaming
    assert chat(stream=True).streaming


@pytest.mark.parametrize(
    ("fields", "usage"),
    [
        ({}, StreamUsage.SETTLED),
        ({"stream": None, "stream_options": {}}, StreamUsage.SETTLED),
        ({"stream": True}, StreamUsage.NOT_ASKED),
        ({"stream": True, "stream_options": None}, StreamUsage.REFUSED),
        ({"stream": True, "stream_options": {"include_usage": False}}, StreamUsage.REFUSED),
        ({"stream": True, "stream_options": {"include_usage": "yes"}}, StreamUsage.REFUSED),
        ({"stream": True, "stream_options": {"include_usage": True}}, StreamUsage.SETTLED),
    ],
)
def test_a_stream_without_its_usage_is_told(fields: dict[str, Any], usage: StreamUsage) -> None:
    asked = body(model="m", messages=HELLO, **fields)
    assert parse(asked, CHAT).usage is stream_usage(Api.OPENAI_CHAT, asked) is usage


def test_only_apis_that_tell_a_streams_usage_on_request_lack_it() -> None:
    asked = body(model="m", messages=HELLO, prompt="hi", input="hi", contents=HELLO, stream=True)
    paths = (CHAT, "/v1/completions", "/v1/responses", "/v1/messages", "/v1beta/models/m:streamGenerateContent")
    found = [parse(asked, path) for path in paths]
    assert [one.usage for one in found] == [StreamUsage.NOT_ASKED] * 2 + [StreamUsage.SETTLED] * 3
    assert [stream_usage(one.api, asked) for one in found] == [one.usage for one in found]


def test_what_is_no_body_tells_nothing_of_usage() -> None:
    with pytest.raises(BadBody):
        stream_usage(Api.OPENAI_CHAT, b'{"stream":1}')


@pytest.mark.parametrize(
    ("fields", "session"),
    [
        ({"user": "u"}, "u"),
        ({"user": "u", "metadata": {"user_id": "mu"}}, "mu"),
        ({"metadata": {"user_id": "mu", "session_id": "s"}}, "s"),
        ({"previous_response_id": "r", "user": "u"}, "r"),
        ({"conversation": {"id": "c"}, "previous_response_id": "r"}, "c"),
        ({"conversation": "c"}, "c"),
        ({"prompt_cache_key": "k", "conversation": "c"}, "k"),
        ({"prompt_cache_key": "", "user": "u"}, "u"),
        ({"user": "u" * 10_000}, "u" * SESSION_CHARS_MAX),
    ],
)
def test_the_most_specific_session_is_kept_and_bounded(fields: dict[str, Any], session: str) -> None:
    assert chat(**fields).session == session


def test_needs_are_read_of_the_part_that_holds_the_conversation() -> None:
    image = [{"role": "user", "content": [{"type": "input_image"}]}]
    assert parse(body(input=image), "/v1/responses").needs == {Need.VISION}
    assert chat(tools=[{"type": "function"}]).needs == {Need.TOOLS}


def test_the_cache_salt_is_read() -> None:
    assert (chat().salt, chat(cache_salt="pepper").salt, chat(cache_salt=5).salt) == ("", "pepper", "")


def test_geminis_path_names_the_model_and_the_stream() -> None:
    body = b'{"systemInstruction":{"parts":[{"text":"s"}]},"contents":[{"parts":[{"text":"hi"}]}]}'
    found = parse(body, "/v1beta/models/gemini%2F2:streamGenerateContent?alt=sse")
    assert (found.api, found.model, found.streaming) == (Api.GEMINI, "gemini/2", True)
    assert found.prompt == (b'{"parts":[{"text":"s"}]}', b'{"parts":[{"text":"hi"}]}')
    assert not parse(body, "/v1beta/models/g:generateContent").streaming
    with pytest.raises(BadBody, match="contents"):
        parse(b"{}", "/v1beta/models/g:generateContent")


def test_a_question_for_tokens_may_hold_the_whole_request() -> None:
    whole = b'{"generateContentRequest":{"model":"models/g","contents":[{"parts":[{"text":"hi"}]}]}}'
    found = parse(whole, "/v1beta/models/g:countTokens")
    assert (found.model, found.prompt) == ("g", (b'{"parts":[{"text":"hi"}]}',))
    with pytest.raises(BadBody, match="contents"):
        parse(b'{"generateContentRequest":{}}', "/v1beta/models/g:countTokens")


@pytest.mark.parametrize(
    ("body", "asks"),
    [
        (b'{"model":"m"}', False),
        (b'{"stream":true}', True),
        (b'{"stream" : true,"messages":[]}', True),
        (b'{"stream":false}', False),
        (b'{"stream":true,"tools":[{"stream":false}]}', True),
        (b'{"tools":[{"stream":true}]}', False),
        (b'{"tools":[{"stream":true}],"messages":[{"a":{}}]}', False),
        (b'{"tools":[{"a":{"stream":true}},{"b":1}]}', False),
        (b'{"messages":[{"content":"{"}],"stream":true,"tools":[{"a":{}}],"stop":"}"}', True),
        (b'{"user":"{","stream":true,"messages":[{"a":{}}]}\n', True),
        (b'{"messages":[{"content":"\\ud83d"}],"stream":true,"user":"\\ud83d"}', True),
        (b'{"stream":null}', False),
        (b'{"stream":true,"stream":false}', False),
        (b'{"stre\\u0061m":true}', True),
    ],
)
def test_what_came_is_held_against_what_was_asked_for(body: bytes, asks: bool) -> None:
    came = asked_otherwise(Api.OPENAI_CHAT, "/v1/chat/completions", body, is_stream=asks)
    otherwise = asked_otherwise(Api.OPENAI_CHAT, "/v1/chat/completions", body, is_stream=not asks)
    assert (came, otherwise) == (False, True)


def test_geminis_path_alone_asks_for_a_stream() -> None:
    path = "/v1beta/models/m:streamGenerateContent"
    assert asked_otherwise(Api.GEMINI, path, b'{"stream":false}', is_stream=False)
    assert not asked_otherwise(Api.GEMINI, path, b"{}", is_stream=True)


def test_a_body_that_cannot_be_read_says_nothing_of_its_stream() -> None:
    assert not asked_otherwise(Api.OPENAI_CHAT, "", b'{"stream":true', is_stream=False)

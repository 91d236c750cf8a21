"""What a relay learns of a stream that goes by."""

from pathlib import Path

import pytest

from kinference.shapes.sse import Event, SseReader
from kinference.shapes.usage import Usage
from kinference.shapes.watch import Kind, StreamWatcher
from kinference.vocabulary import Api

SAMPLES = Path(__file__).parent / "samples"
CHAT, MESSAGES, RESPONSES = Api.OPENAI_CHAT, Api.ANTHROPIC_MESSAGES, Api.OPENAI_RESPONSES


def event(data: bytes, name: str = "") -> Event:
    return Event(name, data, b"")


def kinds(api: Api, *data: bytes) -> list[Kind]:
    watcher = StreamWatcher(api)
    return [watcher.watch(event(text)) for text in data]


@pytest.mark.parametrize(("name", "api", "usages"), [("vllm_chat.sse", CHAT, 1), ("vllm_messages.sse", MESSAGES, 0)])
def test_a_real_stream_is_followed_to_its_end(name: str, api: Api, usages: int) -> None:
    watcher = StreamWatcher(api)
    seen = [watcher.watch(part) for part in SseReader().feed((SAMPLES / name).read_bytes())]
    assert seen[0] is Kind.OTHER
    assert seen[-1] is Kind.END
    assert (seen.count(Kind.CONTENT), seen.count(Kind.USAGE)) == (6, usages)
    assert watcher.usage == Usage(11, 6, 0, "tiny")
    assert (watcher.content_events, watcher.is_complete, watcher.is_failed) == (6, True, False)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b'{"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}', Kind.OTHER),
        (b'{"choices":[{"delta":{"content" : "a"}}]}', Kind.CONTENT),
        (b'{"choices":[{"delta":{"content":null,"reasoning_content":"a"}}]}', Kind.CONTENT),
        (b'{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":""}}]}}]}', Kind.CONTENT),
        (b'{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{\\"a"}}]}}]}', Kind.CONTENT),
        (b'{"choices":[{"text":"a"}],"usage":{"prompt_tokens":1}}', Kind.CONTENT),
        (b'{"choices":[{"delta":{"content":"\\"usage\\":{ \\"error\\":{"}}]}', Kind.CONTENT),
        (b'{"choices":[{"delta":{}}],"usage":{"prompt_tokens":1}}', Kind.OTHER),
        (b'{"choices":[],"usage":{"prompt_tokens":7}}', Kind.USAGE),
        (b'{"choices":[],"usage":null}', Kind.OTHER),
        (b'{"choices":[],"prompt_filter_results":[]}', Kind.OTHER),
        (b'{"error":{"message":"boom"}}', Kind.ERROR),
        (b'{"error" : "boom"}', Kind.ERROR),
        (b'{"object":"error","message":"boom","code":400}', Kind.ERROR),
        (b'{"choices":[{"delta":{"content":"a","error":{"x":1}}}],"error":null}', Kind.CONTENT),
        (b'{"error":{"message"', Kind.OTHER),
        (b"[DONE]", Kind.END),
        (b"", Kind.OTHER),
        (b"half {", Kind.OTHER),
    ],
)
def test_a_chat_event_has_its_kind(data: bytes, kind: Kind) -> None:
    assert kinds(CHAT, data) == [kind]
    assert kinds(Api.OPENAI_COMPLETIONS, data) == [kind]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b'{"type":"message_start","message":{"usage":{"input_tokens":1}}}', Kind.OTHER),
        (b'{"type":"ping"}', Kind.OTHER),
        (b'{"type":"content_block_start","content_block":{"type":"text","text":""}}', Kind.OTHER),
        (b'{"index":0,"delta":{"type":"text_delta","text":"a"},"type":"content_block_delta"}', Kind.CONTENT),
        (b'{"type":"message_stop"}', Kind.END),
        (b'{"type":"error","error":{"type":"overloaded_error"}}', Kind.ERROR),
        (b'{"type":5}', Kind.OTHER),
    ],
)
def test_a_messages_event_has_its_kind_with_or_without_its_name(data: bytes, kind: Kind) -> None:
    assert kinds(MESSAGES, data) == [kind]
    name = data.rpartition(b'"type":"')[2].partition(b'"')[0].decode()
    if name in {"ping", "message_stop", "content_block_delta"}:
        assert StreamWatcher(MESSAGES).watch(event(b"{}", name)) is kind


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b'{"type":"response.created","response":{"usage":null}}', Kind.OTHER),
        (b'{"type":"response.output_text.delta","delta":"a"}', Kind.CONTENT),
        (b'{"type":"response.function_call_arguments.delta","delta":"{"}', Kind.CONTENT),
        (b'{"type":"response.output_text.done","text":"a"}', Kind.OTHER),
        (b'{"type":"response.completed","response":{}}', Kind.END),
        (b'{"type":"response.incomplete","response":{}}', Kind.END),
        (b'{"type":"response.failed","response":{}}', Kind.ERROR),
        (b'{"type":"error","message":"boom"}', Kind.ERROR),
        (b"[DONE]", Kind.END),
    ],
)
def test_a_responses_event_has_its_kind(data: bytes, kind: Kind) -> None:
    assert kinds(RESPONSES, data) == [kind]


@pytest.mark.parametrize("end", ["completed", "incomplete", "failed"])
def test_a_response_reports_its_usage_however_it_ends(end: str) -> None:
    watcher = StreamWatcher(RESPONSES)
    data = b'{"response":{"model":"r","usage":{"input_tokens":9,"output_tokens":2}}}'
    watcher.watch(event(data, f"response.{end}"))
    assert watcher.usage == Usage(9, 2, None, "r")


@pytest.mark.parametrize(
    ("api", "last"),
    [
        (CHAT, event(b"[DONE]")),
        (CHAT, event(b'{"choices":[{"delta":{},"finish_reason":"stop"}]}')),
        (MESSAGES, event(b'{"type":"message_stop"}', "message_stop")),
        (MESSAGES, event(b'{"delta":{"stop_reason":"end_turn"},"usage":{}}', "message_delta")),
        (RESPONSES, event(b"{}", "response.incomplete")),
    ],
)
def test_either_sign_of_an_end_makes_an_answer_complete(api: Api, last: Event) -> None:
    watcher = StreamWatcher(api)
    assert not watcher.is_complete
    watcher.watch(last)
    assert watcher.is_complete


@pytest.mark.parametrize(
    ("api", "data"),
    [
        (CHAT, b'{"choices":[{"delta":{"content":"a"},"finish_reason":null}]}'),
        (MESSAGES, b'{"type":"message_delta","delta":{"stop_reason":null}}'),
        (RESPONSES, b'{"type":"response.failed"}'),
        (CHAT, b'{"error":{"message":"boom"}}'),
    ],
)
def test_an_answer_without_such_a_sign_is_cut(api: Api, data: bytes) -> None:
    watcher = StreamWatcher(api)
    watcher.watch(event(data))
    assert not watcher.is_complete


def test_a7_usage_comes_without_choices_after_the_last_word() -> None:
    watcher = StreamWatcher(CHAT)
    watcher.watch(event(b'{"choices":[{"delta":{},"finish_reason":"stop"}]}'))
    assert watcher.watch(event(b'{"choices":[],"usage":{"prompt_tokens":7}}')) is Kind.USAGE
    assert watcher.usage == Usage(7)


def test_an_error_is_remembered() -> None:
    watcher = StreamWatcher(CHAT)
    watcher.watch(event(b'{"error":{"message":"boom"}}'))
    watcher.watch(event(b"[DONE]"))
    assert watcher.is_failed


@pytest.mark.parametrize(
    ("data", "complete"),
    [
        (b"[DONE]", True),
        (b'{"choices":[{"finish_reason":"stop"}]}', True),
        (b'{"choices":[{"finish_reason":"stop"', False),
    ],
)
def test_a_tail_counts_when_it_is_whole(data: bytes, complete: bool) -> None:
    watcher = StreamWatcher(CHAT)
    watcher.watch_tail(event(data))
    assert watcher.is_complete is complete


def test_a_gemini_stream_is_followed_to_its_end() -> None:
    watcher = StreamWatcher(Api.GEMINI)
    usage = b'"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"thoughtsTokenCount":3},"modelVersion":"g"'
    assert watcher.watch(event(b'{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}')) is Kind.CONTENT
    assert watcher.watch(event(b'{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}')) is Kind.CONTENT
    assert not watcher.is_complete
    assert watcher.watch(event(b'{"candidates":[{"finishReason":"STOP"}],' + usage + b"}")) is Kind.OTHER
    assert (watcher.is_complete, watcher.usage) == (True, Usage(9, 5, None, "g"))
    assert watcher.watch(event(b'{"error":{"code":503}}')) is Kind.ERROR


def test_an_event_that_is_named_an_error_is_one() -> None:
    assert StreamWatcher(CHAT).watch(event(b'{"detail":"boom"}', "error")) is Kind.ERROR

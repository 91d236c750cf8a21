import msgspec
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from kinference.sim.answers import DONE, Head, Usage
from kinference.sim.openai_answers import ChatWriter, CompletionWriter

HEAD = Head("89bee18a2ec55c8b", 1795978704, "tiny", prompt_tokens=11, finish="length", include_usage=True)
SILENT = Head("89bee18a2ec55c8b", 1795978704, "tiny", prompt_tokens=11, finish="stop")
USAGE = Usage(11, 0, 6)


def test_a_chat_stream_has_the_bytes_of_the_real_one() -> None:
    writer = ChatWriter(HEAD)
    start = (
        b'data: {"id":"chatcmpl-89bee18a2ec55c8b","object":"chat.completion.chunk","created":1795978704,"model":"tiny",'
    )
    assert writer.opening() == [
        start + b'"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,'
        b'"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}\n\n'
    ]
    assert writer.word("complete") == (
        start + b'"choices":[{"index":0,"delta":{"content":"complete"},"logprobs":null,'
        b'"finish_reason":null,"token_ids":null}]}\n\n'
    )
    assert writer.last_word("gt") == (
        start + b'"choices":[{"index":0,"delta":{"content":"gt"},"logprobs":null,'
        b'"finish_reason":"length","stop_reason":null,"token_ids":null}]}\n\n'
    )
    assert writer.closing(USAGE) == [
        start + b'"choices":[],"usage":{"prompt_tokens":11,"total_tokens":17,"completion_tokens":6,'
        b'"prompt_tokens_details":{"cached_tokens":0,"created_cache_tokens":0}},'
        b'"system_fingerprint":"vllm-0.32.0-simulated"}\n\n',
        DONE,
    ]


def test_usage_is_streamed_only_when_asked_for() -> None:
    assert ChatWriter(SILENT).closing(USAGE) == [DONE]
    assert CompletionWriter(SILENT).closing(USAGE) == [DONE]


def test_the_official_client_reads_every_answer() -> None:
    chat, completion = ChatWriter(HEAD), CompletionWriter(HEAD)
    assert _chunk(chat.word("abc ")).choices[0].delta.content == "abc "
    whole = ChatCompletion.model_validate_json(chat.whole("abc def ", USAGE))
    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == ("abc def ", "length")
    assert whole.usage is not None
    assert whole.usage.total_tokens == 17
    text = Completion.model_validate_json(completion.whole("abc def ", USAGE))
    assert (text.choices[0].text, text.object) == ("abc def ", "text_completion")


def test_a_completion_streams_its_text() -> None:
    writer = CompletionWriter(HEAD)
    assert writer.opening() == []
    first, last = (msgspec.json.decode(event[6:]) for event in (writer.word("a "), writer.last_word("b ")))
    assert (first["choices"][0]["text"], first["choices"][0]["finish_reason"]) == ("a ", None)
    assert (last["choices"][0]["text"], last["choices"][0]["finish_reason"]) == ("b ", "length")
    assert msgspec.json.decode(writer.closing(USAGE)[0][6:])["usage"]["completion_tokens"] == 6


def _chunk(event: bytes) -> ChatCompletionChunk:
    return ChatCompletionChunk.model_validate_json(event[6:])

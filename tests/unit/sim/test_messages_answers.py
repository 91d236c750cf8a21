from anthropic.types import Message

from kinference.sim.answers import Head, Usage
from kinference.sim.messages_answers import MessagesWriter

HEAD = Head("8150dfe1feea6850", 1795978704, "tiny", prompt_tokens=11, finish="length")


def test_a_stream_has_the_bytes_of_the_real_one() -> None:
    writer = MessagesWriter(HEAD)
    assert b"".join([*writer.opening(), writer.last_word(" iterator"), *writer.closing(Usage(11, 0, 6))]) == (
        b"event: message_start\n"
        b'data: {"type":"message_start","message":{"id":"chatcmpl-8150dfe1feea6850","type":"message",'
        b'"role":"assistant","content":[],"model":"tiny","stop_reason":null,"stop_sequence":null,'
        b'"usage":{"input_tokens":11,"output_tokens":0}}}\n\n'
        b"event: content_block_start\n"
        b'data: {"type":"content_block_start","content_block":{"type":"text","text":""},"index":0}\n\n'
        b"event: content_block_delta\n"
        b'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":" iterator"},"index":0}\n\n'
        b"event: content_block_stop\n"
        b'data: {"type":"content_block_stop","index":0}\n\n'
        b"event: message_delta\n"
        b'data: {"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},'
        b'"usage":{"input_tokens":11,"output_tokens":6,"cache_creation_input_tokens":0,'
        b'"cache_read_input_tokens":0}}\n\n'
        b"event: message_stop\n"
        b'data: {"type":"message_stop"}\n\n'
    )


def test_cached_tokens_are_not_counted_twice() -> None:
    message = Message.model_validate_json(MessagesWriter(HEAD).whole("abc ", Usage(11, 8, 1)))
    assert (message.usage.input_tokens, message.usage.cache_read_input_tokens) == (3, 8)


def test_an_answer_that_ends_by_itself_ends_its_turn() -> None:
    head = Head("1", 0, "tiny", prompt_tokens=11, finish="stop")
    assert Message.model_validate_json(MessagesWriter(head).whole("abc ", Usage(11, 0, 1))).stop_reason == "end_turn"

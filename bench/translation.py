"""Times translation between APIs: whole requests of 64 KiB, and chunks of a stream. Run: `python bench/translation.py`."""

import argparse
import json
import struct
import time
import timeit
from binascii import crc32
from collections.abc import Callable
from functools import partial

from kinference.shapes.answers import Frame
from kinference.shapes.translate import CLIENTS, DESTINATIONS, Way, emit, plan, reader_of
from kinference.shapes.way_back import StreamTranslation
from kinference.vocabulary import Api

PROSE = "The quick brown fox jumps over the lazy dog, and the story goes on. "
CHUNKS = {
    Api.OPENAI_CHAT: (
        b'data: {"id":"chatcmpl-89bee18a2ec55c8b","object":"chat.completion.chunk","created":1795978704,"model":"tiny",'
        b'"choices":[{"index":0,"delta":{"content":"word"},"logprobs":null,"finish_reason":null}]}\n\n'
    ),
    Api.ANTHROPIC_MESSAGES: (
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta",'
        b'"text":"word"}}\n\n'
    ),
    Api.OPENAI_RESPONSES: (
        b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":4,'
        b'"item_id":"msg_1","output_index":0,"content_index":0,"delta":"word","logprobs":[]}\n\n'
    ),
    Api.GEMINI: (
        b'data: {"candidates":[{"content":{"role":"model","parts":[{"text":"word"}]},"index":0}],"usageMetadata":'
        b'{"promptTokenCount":9,"totalTokenCount":9},"modelVersion":"g","responseId":"r"}\r\n\r\n'
    ),
}


def frame(name: str, body: bytes) -> bytes:
    """One event in AWS's binary framing."""
    pairs = ((b":event-type", name.encode()), (b":message-type", b"event"))
    headers = b"".join(
        bytes([len(key)]) + key + b"\x07" + struct.pack(">H", len(value)) + value for key, value in pairs
    )
    prelude = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    head = prelude + struct.pack(">I", crc32(prelude)) + headers + body
    return head + struct.pack(">I", crc32(head))


CHUNKS[Api.BEDROCK_CONVERSE] = frame("contentBlockDelta", b'{"contentBlockIndex":0,"delta":{"text":"word"}}')
CONVERSING = [client for client in CLIENTS if client is not Api.OPENAI_EMBEDDINGS]


def request(api: Api, messages: int, body_bytes: int) -> bytes:
    """A conversation of about this size in a client's API."""
    text = PROSE * (body_bytes // messages // len(PROSE))
    turns = [(("user", "assistant")[turn % 2], text) for turn in range(messages - 1 | 1)]
    said = [{"role": role, "content": content} for role, content in turns]
    bodies = {
        Api.OPENAI_CHAT: {"model": "m", "messages": said},
        Api.ANTHROPIC_MESSAGES: {"model": "m", "max_tokens": 9, "messages": said},
        Api.OPENAI_RESPONSES: {"model": "m", "input": said},
        Api.OPENAI_COMPLETIONS: {"model": "m", "prompt": PROSE * (body_bytes // len(PROSE))},
        Api.GEMINI: {
            "contents": [
                {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]} for role, text in turns
            ]
        },
    }
    return json.dumps(bodies[api]).encode()


def microseconds(call: Callable[[], object], rounds: int) -> float:
    """The median round's CPU time of one call."""
    timer = timeit.Timer(call, timer=time.process_time)
    loops = max(1, timer.autorange()[0] // 10)
    return sorted(timer.repeat(rounds, loops))[rounds // 2] / loops * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kib", type=int, default=64, help="size of the bodies (default 64)")
    parser.add_argument("--messages", type=int, default=60, help="messages in each (default 60)")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of which the median counts (default 9)")
    options = parser.parse_args()

    print("microseconds a request, from the client's API (down) to the destination's")
    print(" " * 22 + "".join(f"{api.value:>20}" for api in DESTINATIONS))
    for client in CONVERSING:
        body = request(client, options.messages, options.kib << 10)

        def translated(body: bytes, way: Way) -> bytes:
            return emit(plan(body, way))

        ways = (Way(client, destination, "m") for destination in DESTINATIONS)
        figures = "".join(f"{microseconds(partial(translated, body, way), options.rounds):20.0f}" for way in ways)
        print(f"{client.value:22}{figures}")

    print("\nmicroseconds a chunk of a stream, from the destination's API (across) to the client's")
    print(" " * 22 + "".join(f"{api.value:>20}" for api in CHUNKS))
    for client in CONVERSING:
        small = request(client, 1, 200)
        figures = ""
        for destination, chunk in CHUNKS.items():
            back = plan(small, Way(client, destination, "m")).back
            translation, reader = StreamTranslation(back, Frame("r", 1)), reader_of(back)

            def fed(translation: StreamTranslation, chunk: bytes) -> None:
                for event in reader.feed(chunk):  # noqa: B023 - called within the round
                    translation.feed(event)

            figures += f"{microseconds(partial(fed, translation, chunk), options.rounds):20.1f}"
        print(f"{client.value:22}{figures}")


if __name__ == "__main__":
    main()

"""What is fuzzed of the translation: bodies of every client's API to every destination, and every destination's answers
and streams to every client.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from kinference.shapes.answers import Frame, NoAnswer
from kinference.shapes.counting import count_request, estimate
from kinference.shapes.detect import parse
from kinference.shapes.scan import BadBody
from kinference.shapes.sse import EventTooLong
from kinference.shapes.translate import CLIENTS, DESTINATIONS, Return, Way, emit, plan, reader_of, translates
from kinference.shapes.way_back import StreamTranslation, read_answer, write_answer, write_stream
from kinference.vocabulary import Api

FRAME = Frame("r", 1)
GROWTH_MAX = 64
"""How many times longer than the input, and some, what is written may be: no input blows memory up."""
ALLOWANCE = 16_384
BODIES: Mapping[Api, bytes] = {
    Api.OPENAI_CHAT: b'{"model":"m","messages":[{"role":"user","content":"hi"}]}',
    Api.OPENAI_RESPONSES: b'{"model":"m","input":"hi"}',
    Api.OPENAI_COMPLETIONS: b'{"model":"m","prompt":"hi"}',
    Api.OPENAI_EMBEDDINGS: b'{"model":"m","input":"hi"}',
    Api.ANTHROPIC_MESSAGES: b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}',
    Api.GEMINI: b'{"contents":[{"parts":[{"text":"hi"}]}]}',
}


BACKS: Mapping[tuple[Api, Api], Return] = {
    (client, destination): plan(body, Way(client, destination, "m")).back
    for client, body in BODIES.items()
    for destination in DESTINATIONS
    if translates(client, destination)
}


def request(client: Api, data: bytes) -> None:
    """A body is translated to JSON within bounds or refused with words, and twice alike."""
    with suppress(BadBody):
        parse(data, "/v1beta/models/m:generateContent" if client is Api.GEMINI else "")
    for destination in DESTINATIONS:
        if not translates(client, destination):
            continue
        written = _translated(data, Way(client, destination, "m"))
        assert written, "a refusal without words"
        assert written == _translated(data, Way(client, destination, "m")), "the same body is translated differently"
        if isinstance(written, bytes):
            json.loads(written)
            assert len(written) <= len(data) * GROWTH_MAX + ALLOWANCE
            with suppress(BadBody):
                count_request(data, Way(client, destination, "m"))
    with suppress(BadBody):
        assert estimate(data, client) > 0


def _translated(data: bytes, way: Way) -> bytes | str:
    try:
        return emit(plan(data, way))
    except BadBody as error:
        return str(error)


def answer(destination: Api, data: bytes) -> None:
    """An answer is written in every client's API or is none; a stream is the same however it is cut."""
    size, body = (data[0] if data else 0) % 32 + 1, data[1:]
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    for client in CLIENTS:
        if (client, destination) not in BACKS:
            continue
        back = BACKS[client, destination]
        _whole(back, body)
        at_once, bit_by_bit = _streamed(back, [body]), _streamed(back, pieces)
        assert at_once == bit_by_bit, "a cut changes the stream"
        assert len(at_once) <= len(body) * GROWTH_MAX + ALLOWANCE


def _whole(back: Return, body: bytes) -> None:
    with suppress(NoAnswer):
        read = read_answer(back, body)
        json.loads(write_answer(back, read, FRAME))
        write_stream(back, read, FRAME)


def _streamed(back: Return, pieces: Sequence[bytes]) -> bytes:
    """What the client gets, also of a stream that is none from somewhere on."""
    reader, translation, written = reader_of(back), StreamTranslation(back, FRAME), bytearray()
    with suppress(EventTooLong):
        for piece in pieces:
            for event in reader.feed(piece):
                written += translation.feed(event)
    tail = reader.tail()
    if tail is not None:
        written += translation.feed(tail)
    written += translation.close()
    assert translation.content_pieces >= 0
    return bytes(written)


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    **{f"request-{client.value}": partial(request, client) for client in CLIENTS},
    **{f"answer-{destination.value}": partial(answer, destination) for destination in DESTINATIONS},
}

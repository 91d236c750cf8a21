"""Times, in CPU time, what the hot path does to bodies and events. Run: `python bench/shapes.py`."""

import argparse
import json
import time
import timeit
from collections.abc import Callable
from functools import partial

import msgspec

from kinference.shapes.detect import parse
from kinference.shapes.patch import add_include_usage, replace_model, set_include_usage
from kinference.shapes.sse import SseReader
from kinference.shapes.watch import StreamWatcher
from kinference.vocabulary import Api

PATH = "/v1/chat/completions"
PROSE = "The quick brown fox jumps over the lazy dog, and the story goes on. "
CODE = 'def f(x):\n    return {"a": [x, 1]}\n'
CHUNK = (
    b'data: {"id":"chatcmpl-89bee18a2ec55c8b","object":"chat.completion.chunk","created":1795978704,"model":"tiny",'
    b'"choices":[{"index":0,"delta":{"content":"word"},"logprobs":null,"finish_reason":null,"token_ids":null}]}\n\n'
)


def chat(content: str, messages: int, body_bytes: int) -> bytes:
    """A chat body of about this size, its model last."""
    repeats = body_bytes // messages // len(json.dumps(content))
    turns = [{"role": ("user", "assistant")[turn % 2], "content": content * repeats} for turn in range(messages)]
    return json.dumps({"messages": turns, "stream": True, "model": "small"}).encode()


def microseconds(call: Callable[[], object], rounds: int) -> float:
    """The median round's CPU time of one call."""
    timer = timeit.Timer(call, timer=time.process_time)
    loops = max(1, timer.autorange()[0] // 10)
    return sorted(timer.repeat(rounds, loops))[rounds // 2] / loops * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kib", type=int, default=64, help="size of the bodies (default 64)")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of which the median counts (default 15)")
    options = parser.parse_args()

    bodies = {
        "prose, 20 messages": chat(PROSE, 20, options.kib << 10),
        "prose, 200 messages": chat(PROSE, 200, options.kib << 10),
        "code, 60 messages": chat(CODE, 60, options.kib << 10),
        "small": b'{"model":"small","messages":[{"role":"user","content":"hello"}]}',
    }
    print(f"{'microseconds':22}{'bytes':>8}{'decode':>9}{'parse':>9}{'model':>9}{'add':>9}{'set':>9}")
    for name, body in bodies.items():
        calls: tuple[Callable[[], object], ...] = (
            partial(msgspec.json.decode, body),
            partial(parse, body, PATH),
            partial(replace_model, body, "large"),
            partial(add_include_usage, body),
            partial(set_include_usage, body),
        )
        figures = "".join(f"{microseconds(call, options.rounds):9.1f}" for call in calls)
        print(f"{name:22}{len(body):8}{figures}")

    reader, watcher = SseReader(), StreamWatcher(Api.OPENAI_CHAT)
    [event] = reader.feed(CHUNK)
    print(f"{'event, read':22}{len(CHUNK):8}{microseconds(partial(reader.feed, CHUNK), options.rounds):9.2f}")
    print(f"{'event, watched':22}{len(CHUNK):8}{microseconds(partial(watcher.watch, event), options.rounds):9.2f}")


if __name__ == "__main__":
    main()

"""Times our translation against LiteLLM's of the same bodies and chunks, in turns within one run.

Run: `python bench/translation_rival.py`. LiteLLM is a pinned release in an environment of its own, which the first run
makes in the directory that `--environment` names. Counted is CPU time from the bytes of a body, or of an event's data,
to the bytes for the other side, twice for requests:

- alone: LiteLLM's transformation of parameters and messages, called by itself between its JSON reader and its JSON
  writer, against `plan` and `emit`, which also tell what is lost;
- whole: what each does in the product between the client's bytes and the HTTP client. Of LiteLLM that is
  `litellm.completion` up to its HTTP client's `post`, without its router, its proxy, and the threads that it leaves work
  to; of ours the body's parsing for routing, and the rewriting, which also makes out the way back.
  (LiteLLM's way to Converse signs by a library that is no part of it: there is no whole figure.)

Answers are counted from the bytes of a whole one to the bytes for a client of Chat: LiteLLM's `transform_response`
between its HTTP client's response and its own model written as JSON, against ours with what is told of losses.
"""

import argparse
import json
import subprocess
import time
import timeit
import venv
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median

from rival.answers import ANSWERS  # type: ignore[import-not-found] # the folder beside this script
from rival.answers import DESTINATIONS as ANSWERING
from rival.conversations import CONVERSATIONS, MODEL  # type: ignore[import-not-found] # the folder beside this script

from kinference.core.decision import BackendChoice
from kinference.ids import ObjectRef, StreamId
from kinference.picker.rewriting import rewrite
from kinference.ports import PickArguments
from kinference.shapes.answers import Frame
from kinference.shapes.detect import parse
from kinference.shapes.sse import Event
from kinference.shapes.translate import Way, emit, plan
from kinference.shapes.way_back import StreamTranslation, losses_of, read_answer, write_answer
from kinference.vocabulary import Api

PINNED = "litellm==1.80.0"
SIDE = Path(__file__).parent / "rival" / "litellm_side.py"
PATH = "/v1/chat/completions"
DESTINATIONS = {
    "messages": (Api.ANTHROPIC_MESSAGES, MODEL),
    "gemini": (Api.GEMINI, "gemini-2.5-pro"),
    "converse": (Api.BEDROCK_CONVERSE, "anthropic.claude-3-5-sonnet-20241022-v2:0"),
}
NO_WHOLE = "converse"
CHUNKS = {
    "messages": '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word"}}',
    "gemini": '{"candidates":[{"content":{"role":"model","parts":[{"text":"word"}]},"index":0}],"usageMetadata":'
    '{"promptTokenCount":9,"candidatesTokenCount":1,"totalTokenCount":10},"modelVersion":"g","responseId":"r"}',
}
SECONDS = 0.02
"""Of work in one round, about."""


def alone(body: bytes, way: Way) -> bytes:
    """Our translation."""
    return emit(plan(body, way))


def whole(body: bytes, way: Way) -> object:
    """What the product does around it too."""
    arguments = PickArguments(StreamId(0), "", request_path=PATH, translates=True)
    choice = BackendChoice(ObjectRef("", "provider"), way.model, way.destination, "")
    return rewrite(body, parse(body, PATH), choice, arguments)


def chunk(name: str) -> Callable[[], object]:
    """One chunk's translation, in the midst of a stream."""
    text, (api, model) = CHUNKS[name].encode(), DESTINATIONS[name]
    back = plan(CONVERSATIONS["one text"](200), Way(Api.OPENAI_CHAT, api, model)).back
    return partial(StreamTranslation(back, Frame("r", 1)).feed, Event("content_block_delta", text, text))


def answer(name: str, body: bytes) -> Callable[[], object]:
    """One whole answer's translation, and what the client is told of what is lost."""
    api, model = DESTINATIONS[name]
    back = plan(CONVERSATIONS["agent"](200), Way(Api.OPENAI_CHAT, api, model)).back

    def translated() -> bytes:
        read = read_answer(back, body)
        losses_of(back, read)
        return write_answer(back, read, Frame("r", 1))

    return translated


def environment(place: Path) -> Path:
    """The interpreter of LiteLLM's environment, made where there is none."""
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PINNED], check=True)
    return python


class Rival:
    """LiteLLM's process."""

    def __init__(self, python: Path) -> None:
        command = [python, SIDE]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        while (line := self._heard()) != "ready":
            if not line:
                raise SystemExit("LiteLLM did not start")

    def microseconds(self, name: str, text: str, loops: int) -> float:
        """CPU time of one call."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([name, text, loops]) + "\n")
        self.process.stdin.flush()
        return float(self._heard())

    def _heard(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def compared(rival: Rival, name: str, text: str, call: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Our microseconds and LiteLLM's, the medians of rounds in turn."""
    timer = timeit.Timer(call, timer=time.thread_time)
    call()
    loops = max(1, int(SECONDS / max(timer.timeit(3) / 3, 1e-7)))
    rival.microseconds(name, text, 1)
    own, others = [], []
    for _ in range(rounds):
        own.append(timer.timeit(loops) / loops * 1e6)
        others.append(rival.microseconds(name, text, max(1, loops // 8)))
    return median(own), median(others)


def figures(pair: tuple[float, float]) -> str:
    own, other = pair
    return f" {own:9.1f} | {other:9.1f} | {other / own:6.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, default=Path("build/rival"), help="LiteLLM's environment")
    parser.add_argument("--kib", type=int, nargs="+", default=[1, 16, 64, 256], help="sizes (default 1 16 64 256)")
    parser.add_argument("--answer-kib", type=int, nargs="+", default=[1, 16], help="of answers (default 1 16)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of which the median counts (default 7)")
    options = parser.parse_args()

    rival = Rival(environment(options.environment))
    print(f"Microseconds of CPU time, {PINNED}; alone, then whole.\n")
    print("| chat to | KiB | conversation | ours | LiteLLM | times | ours, whole | LiteLLM, whole | times |")
    print("|---|--:|---|--:|--:|--:|--:|--:|--:|")
    for name, (api, model) in DESTINATIONS.items():
        way = Way(Api.OPENAI_CHAT, api, model)
        for kib in options.kib:
            for kind, made in CONVERSATIONS.items():
                body = made(kib << 10)
                row = figures(compared(rival, name, body.decode(), partial(alone, body, way), options.rounds))
                if name != NO_WHOLE:
                    call = partial(whole, body, way)
                    row += figures(compared(rival, f"whole {name}", body.decode(), call, options.rounds))
                print(f"| {name} | {kib} | {kind} |{row}", flush=True)
    print("\n| answer of | KiB | answer | ours | LiteLLM | times |\n|---|--:|---|--:|--:|--:|")
    for name, said in product(DESTINATIONS, ANSWERS):
        for kib in options.answer_kib:
            body = ANSWERING[name](ANSWERS[said](kib << 10))
            pair = compared(rival, f"answer of {name}", body.decode(), answer(name, body), options.rounds)
            print(f"| {name} | {kib} | {said} |{figures(pair)}", flush=True)
    print()
    for name, text in CHUNKS.items():
        pair = compared(rival, f"chunk of {name}", text, chunk(name), options.rounds)
        print(f"| chunk of {name} |{figures(pair)}", flush=True)
    rival.process.terminate()


if __name__ == "__main__":
    main()

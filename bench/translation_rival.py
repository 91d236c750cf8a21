"""Times our translation against LiteLLM's of the same bodies and chunks, in turns within one run.

Run: `python bench/translation_rival.py`. LiteLLM is a pinned release in an environment of its own, which the first run
makes in the directory that `--environment` names. Counted is CPU time from the bytes of a body, or of an event's data,
to the bytes for the other side: of LiteLLM its transformation alone, without its router, hooks and logging.
"""

import argparse
import json
import subprocess
import time
import timeit
import venv
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kinference.shapes.answers import Frame
from kinference.shapes.sse import Event
from kinference.shapes.translate import Way, emit, plan
from kinference.shapes.way_back import StreamTranslation
from kinference.vocabulary import Api

PINNED = "litellm==1.74.9"
SIDE = Path(__file__).parent / "rival" / "litellm_side.py"
PROSE = "The quick brown fox jumps over the lazy dog, and the story goes on. "
MODEL = "claude-3-5-sonnet-20241022"
MESSAGES_CHUNK = (
    '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word"}}'  # as Anthropic writes it
)
GEMINI_CHUNK = (
    '{"candidates":[{"content":{"role":"model","parts":[{"text":"word"}]},"index":0}],"usageMetadata":'
    '{"promptTokenCount":9,"candidatesTokenCount":1,"totalTokenCount":10},"modelVersion":"g","responseId":"r"}'
)


def chat(messages: int, body_bytes: int) -> bytes:
    """A chat of about this size, with a tool."""
    text = PROSE * (body_bytes // messages // len(PROSE))
    said = [{"role": ("user", "assistant")[turn % 2], "content": text} for turn in range(messages - 1 | 1)]
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": schema}}]
    fields = {"model": MODEL, "max_tokens": 99, "temperature": 0.5, "tools": tools, "messages": said}
    return json.dumps(fields, separators=(",", ":")).encode()


def ours(body: bytes) -> dict[str, Callable[[], object]]:
    """What we do, by name."""

    def request(destination: Api) -> bytes:
        return emit(plan(body, Way(Api.OPENAI_CHAT, destination, MODEL)))

    def chunk(destination: Api, text: bytes) -> Callable[[], object]:
        back = plan(body, Way(Api.OPENAI_CHAT, destination, MODEL)).back
        event = Event("content_block_delta", text, text)
        return partial(StreamTranslation(back, Frame("r", 1)).feed, event)

    return {
        "request to messages": partial(request, Api.ANTHROPIC_MESSAGES),
        "request to gemini": partial(request, Api.GEMINI),
        "request to converse": partial(request, Api.BEDROCK_CONVERSE),
        "chunk of messages": chunk(Api.ANTHROPIC_MESSAGES, MESSAGES_CHUNK.encode()),
        "chunk of gemini": chunk(Api.GEMINI, GEMINI_CHUNK.encode()),
    }


def environment(place: Path) -> Path:
    """The interpreter of LiteLLM's environment, made where there is none."""
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PINNED], check=True)
    return python


class Rival:
    """LiteLLM's process."""

    def __init__(self, python: Path, body: bytes) -> None:
        command = [python, SIDE]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._say(json.dumps([body.decode(), MESSAGES_CHUNK, GEMINI_CHUNK]))
        while (line := self._heard()) != "ready":
            if not line:
                raise SystemExit("LiteLLM did not start")

    def microseconds(self, name: str, loops: int) -> float:
        """CPU time of one call."""
        self._say(f"{name} {loops}")
        return float(self._heard())

    def _say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def _heard(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, default=Path("build/rival"), help="LiteLLM's environment")
    parser.add_argument("--kib", type=int, default=64, help="size of the bodies (default 64)")
    parser.add_argument("--messages", type=int, default=60, help="messages in each (default 60)")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of which the median counts (default 9)")
    options = parser.parse_args()

    body = chat(options.messages, options.kib << 10)
    rival = Rival(environment(options.environment), body)
    print(f"{'microseconds':24}{'kinference':>12}{PINNED:>20}{'times':>8}")
    for name, call in ours(body).items():
        loops, rounds = 20 if name.startswith("request") else 2000, []
        for _ in range(options.rounds):
            own = timeit.Timer(call, timer=time.process_time).timeit(loops) / loops * 1e6
            rounds.append((own, rival.microseconds(name, loops)))
        own, other = (sorted(column)[options.rounds // 2] for column in zip(*rounds, strict=True))
        print(f"{name:24}{own:12.1f}{other:20.1f}{other / own:8.1f}", flush=True)
    rival.process.terminate()


if __name__ == "__main__":
    main()

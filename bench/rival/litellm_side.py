"""LiteLLM's half of `bench/translation_rival.py`, run in an environment of its own.

Reads its body and chunks as one line of JSON, then times what it is asked for: a name and a number of loops a line.
"""

import json
import sys
import time
import timeit
from collections.abc import Callable
from typing import Any

# LiteLLM is in this file's own environment alone, where nothing is type-checked.
from litellm.llms.anthropic.chat.handler import ModelResponseIterator  # type: ignore[import-not-found]
from litellm.llms.anthropic.chat.transformation import AnthropicConfig  # type: ignore[import-not-found]
from litellm.llms.bedrock.chat.converse_transformation import AmazonConverseConfig  # type: ignore[import-not-found]
from litellm.llms.gemini.chat.transformation import GoogleAIStudioGeminiConfig  # type: ignore[import-not-found]
from litellm.llms.vertex_ai.gemini import transformation as gemini  # type: ignore[import-not-found]
from litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini import (  # type: ignore[import-not-found]
    ModelResponseIterator as GeminiIterator,
)

CLAUDE, CONVERSE, GEMINI = "claude-3-5-sonnet-20241022", "anthropic.claude-3-5-sonnet-20241022-v2:0", "gemini-2.5-pro"


class Logging:
    """What LiteLLM's iterator of Gemini's chunks looks at of its logging."""

    def __init__(self) -> None:
        self.optional_params: dict[str, Any] = {}
        self.model_call_details: dict[str, Any] = {}


class Side:
    """What LiteLLM does, from bytes to bytes."""

    def __init__(self, body: str, messages_chunk: str, gemini_chunk: str) -> None:
        self._body, self._messages_chunk, self._gemini_chunk = body, messages_chunk, gemini_chunk
        self._messages = ModelResponseIterator(None, sync_stream=True)
        self._gemini = GeminiIterator(iter(()), sync_stream=True, logging_obj=Logging())

    def work(self) -> dict[str, Callable[[], object]]:
        """By name."""
        return {
            "request to messages": lambda: self._request(AnthropicConfig(), CLAUDE),
            "request to gemini": self._to_gemini,
            "request to converse": lambda: self._request(AmazonConverseConfig(), CONVERSE),
            "chunk of messages": lambda: self._chunk(self._messages, self._messages_chunk),
            "chunk of gemini": lambda: self._chunk(self._gemini, self._gemini_chunk),
        }

    def _asked(self, config: AnthropicConfig, model: str) -> tuple[list[Any], dict[str, Any]]:
        fields = json.loads(self._body)
        del fields["model"]
        said = fields.pop("messages")
        optional: dict[str, Any] = {}
        return said, config.map_openai_params(fields, optional, model, drop_params=True)

    def _request(self, config: AnthropicConfig, model: str) -> bytes:
        said, optional = self._asked(config, model)
        return json.dumps(config.transform_request(model, said, optional, {}, {})).encode()

    def _to_gemini(self) -> bytes:
        said, optional = self._asked(GoogleAIStudioGeminiConfig(), GEMINI)
        made = gemini._transform_request_body(said, GEMINI, optional, "gemini", {}, None)  # noqa: SLF001 - it has no other way in
        return json.dumps(made).encode()

    def _chunk(self, iterator: ModelResponseIterator, text: str) -> bytes:
        return str(iterator.chunk_parser(json.loads(text)).model_dump_json(exclude_none=True)).encode()


def main() -> None:
    work = Side(*json.loads(sys.stdin.readline())).work()
    for call in work.values():
        call()
    print("ready", flush=True)
    for line in sys.stdin:
        name, _, loops = line.strip().rpartition(" ")
        timer = timeit.Timer(work[name], timer=time.process_time)
        print(timer.timeit(int(loops)) / int(loops) * 1e6, flush=True)


if __name__ == "__main__":
    main()

"""LiteLLM's half of `bench/translation_rival.py`, run in an environment of its own.

Reads what to do as one line of JSON each: the name of the work, a body or an event's data, and how often; answers with
microseconds of CPU time.
"""

import json
import os
import sys
import time
import timeit
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # read while it is imported; else it is fetched

# LiteLLM is in this file's own environment alone, where nothing is type-checked.
import httpx  # type: ignore[import-not-found]
import litellm  # type: ignore[import-not-found]
from litellm.llms.anthropic.chat.handler import ModelResponseIterator  # type: ignore[import-not-found]
from litellm.llms.anthropic.chat.transformation import AnthropicConfig  # type: ignore[import-not-found]
from litellm.llms.bedrock.chat.converse_transformation import (  # type: ignore[import-not-found]
    AmazonConverseConfig,
)
from litellm.llms.custom_httpx.http_handler import HTTPHandler  # type: ignore[import-not-found]
from litellm.llms.gemini.chat.transformation import (  # type: ignore[import-not-found]
    GoogleAIStudioGeminiConfig,
)
from litellm.llms.vertex_ai.gemini import transformation as gemini  # type: ignore[import-not-found]
from litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini import (  # type: ignore[import-not-found]
    ModelResponseIterator as GeminiIterator,
)
from litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini import (
    VertexGeminiConfig,
)

CLAUDE, CONVERSE, GEMINI = "claude-3-5-sonnet-20241022", "anthropic.claude-3-5-sonnet-20241022-v2:0", "gemini-2.5-pro"


ASKED = [{"role": "user", "content": "Find the fault and mend it."}]


class Logging:
    """What LiteLLM's transformations look at of its logging."""

    def __init__(self) -> None:
        self.optional_params: dict[str, Any] = {}
        self.model_call_details: dict[str, Any] = {}

    def post_call(self, **_: object) -> None:
        """Nothing: its logging is no part of what is compared."""


# --- its transformation alone, from bytes to bytes ---------------------------------------------------


def transformed(config: AnthropicConfig, model: str, body: str) -> bytes:
    said, optional = _asked(config, model, body)
    return written(config.transform_request(model, said, optional, {}, {}))


def to_gemini(body: str) -> bytes:
    said, optional = _asked(GoogleAIStudioGeminiConfig(), GEMINI, body)
    made = gemini._transform_request_body(said, GEMINI, optional, "gemini", {}, None)  # noqa: SLF001 - it has no other way in
    return written(made)


def _asked(config: AnthropicConfig, model: str, body: str) -> tuple[list[Any], dict[str, Any]]:
    fields = json.loads(body)
    del fields["model"]
    said = fields.pop("messages")
    return said, config.map_openai_params(fields, {}, model, drop_params=True)


def chunk(iterator: ModelResponseIterator, text: str) -> bytes:
    return str(iterator.chunk_parser(json.loads(text)).model_dump_json(exclude_none=True)).encode()


def answer(config: AnthropicConfig, model: str, text: str) -> bytes:
    came = httpx.Response(200, content=text.encode(), request=httpx.Request("POST", "http://localhost"))
    made = config.transform_response(
        model=model,
        raw_response=came,
        model_response=litellm.ModelResponse(),
        logging_obj=Logging(),
        request_data={},
        messages=ASKED,
        optional_params={},
        litellm_params={},
        encoding=None,
    )
    return str(made.model_dump_json(exclude_none=True)).encode()


# --- its whole way, from the client's bytes to those that it gives its HTTP client -------------------


class Sent(BaseException):
    """Ends a call where its request would go out; of a kind that LiteLLM does not take for an error."""


def written(value: object) -> bytes:
    return json.dumps(value).encode()


class Wire(HTTPHandler):  # type: ignore[misc] # untyped here
    """Notes when a request would go out."""

    at = 0.0

    def post(self, url: str, data: object = None, json: object = None, **_: object) -> None:  # noqa: ARG002 - called by name
        if not isinstance(data, str | bytes):
            written(json if data is None else data)  # as its HTTP client would
        self.at = time.thread_time()
        raise Sent


def whole(wire: Wire, model: str, body: str) -> float:
    """Seconds of this thread alone: what LiteLLM does on others meanwhile is not counted against it."""
    began = time.thread_time()
    fields = json.loads(body) | {"model": model}
    try:
        litellm.completion(**fields, client=wire, drop_params=True, api_key="none")
    except Sent:
        return wire.at - began
    raise SystemExit("LiteLLM sent nothing")


def microseconds(name: str, text: str, loops: int) -> float:
    """CPU time of one piece of work."""
    if name.startswith("whole "):
        wire, model = Wire(), {"whole messages": f"anthropic/{CLAUDE}", "whole gemini": f"gemini/{GEMINI}"}[name]
        return sum(whole(wire, model, text) for _ in range(loops)) / loops * 1e6
    work: dict[str, Callable[[], object]] = {
        "messages": partial(transformed, AnthropicConfig(), CLAUDE, text),
        "gemini": partial(to_gemini, text),
        "converse": partial(transformed, AmazonConverseConfig(), CONVERSE, text),
        "answer of messages": partial(answer, AnthropicConfig(), CLAUDE, text),
        "answer of gemini": partial(answer, VertexGeminiConfig(), GEMINI, text),
        "answer of converse": partial(answer, AmazonConverseConfig(), CONVERSE, text),
        "chunk of messages": partial(chunk, ModelResponseIterator(None, sync_stream=True), text),
        "chunk of gemini": partial(chunk, GeminiIterator(iter(()), sync_stream=True, logging_obj=Logging()), text),
    }
    return timeit.Timer(work[name], timer=time.thread_time).timeit(loops) / loops * 1e6


def main() -> None:
    litellm.suppress_debug_info = True
    print("ready", flush=True)
    for line in sys.stdin:
        print(microseconds(*json.loads(line)), flush=True)


if __name__ == "__main__":
    main()

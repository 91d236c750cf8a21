"""Reads the bodies of the engine's inference calls, and says no in vLLM's words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TypeAlias, TypeVar

import msgspec

from kinference.shapes.scan import mend_surrogates
from kinference.sim.text import as_prompts, pad, render_chat

EMBEDDING_INPUTS_MAX = 2048


class Refused(Exception):
    """A request that gets an error answer: its HTTP status, the reason, and the field at fault."""

    def __init__(self, status: int, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.param = status, message, param

    @property
    def kind(self) -> str:
        """The status as vLLM names it: `NotFoundError`, `BadRequestError`."""
        phrase = HTTPStatus(self.status).phrase if self.status in list(HTTPStatus) else "Unknown"
        name = phrase.title().replace(" ", "").replace("-", "")
        return name if name.endswith("Error") else name + "Error"


@dataclass(frozen=True, slots=True)
class Ask:
    """An inference call, whatever API it came by. `prompts` has more than one entry for embeddings only."""

    model: str
    prompts: tuple[bytes, ...]
    output_tokens_max: int | None = None
    ignore_eos: bool = False
    stream: bool = False
    include_usage: bool = False
    salt: str = ""
    dimensions: int | None = None
    as_base64: bool = False


Parse: TypeAlias = Callable[[bytes], Ask]


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = False


class _Common(msgspec.Struct):
    model: str | None = ""
    stream: bool | None = False
    stream_options: _StreamOptions | None = None
    max_tokens: int | None = None
    ignore_eos: bool | None = False
    cache_salt: str | None = ""

    def ask(self, prompts: Sequence[bytes], output_tokens_max: int | None) -> Ask:
        """What all APIs have in common, checked."""
        if not prompts or not all(prompts):
            raise Refused(400, "the prompt is empty, or of a kind that is not understood")
        if output_tokens_max is not None and output_tokens_max < 1:
            raise Refused(400, f"max_tokens must be at least 1, got {output_tokens_max}.", "max_tokens")
        return Ask(
            model=self.model or "",
            prompts=tuple(prompts),
            output_tokens_max=output_tokens_max,
            ignore_eos=bool(self.ignore_eos),
            stream=bool(self.stream),
            include_usage=bool(self.stream_options and self.stream_options.include_usage),
            salt=self.cache_salt or "",
        )


class _Chat(_Common, kw_only=True):
    messages: list[dict[str, object]]
    tools: list[object] | None = None
    max_completion_tokens: int | None = None


class _Completion(_Common, kw_only=True):
    prompt: object


class _Embeddings(_Common, kw_only=True):
    input: object
    dimensions: int | None = None
    encoding_format: str | None = "float"


class _Responses(_Common, kw_only=True):
    input: str | list[dict[str, object]]
    instructions: str | None = None
    tools: list[object] | None = None
    max_output_tokens: int | None = None


class _Messages(_Common, kw_only=True):
    messages: list[dict[str, object]]
    system: str | list[object] | None = None
    tools: list[object] | None = None


class _Tokenize(_Common, kw_only=True):
    prompt: str | None = None
    messages: list[dict[str, object]] | None = None


_T = TypeVar("_T")


def _decode(raw: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(mend_surrogates(raw), type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Refused(400, str(error)) from None


def parse_chat(raw: bytes) -> Ask:
    body = _decode(raw, _Chat)
    wanted = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
    return body.ask([render_chat(body.messages, body.tools)], wanted)


def parse_completion(raw: bytes) -> Ask:
    body = _decode(raw, _Completion)
    prompts = as_prompts(body.prompt)
    if len(prompts) > 1:
        raise Refused(400, "this engine takes one prompt a request", "prompt")
    return body.ask(prompts, body.max_tokens)


def parse_embeddings(raw: bytes) -> Ask:
    body = _decode(raw, _Embeddings)
    prompts = as_prompts(body.input)
    if len(prompts) > EMBEDDING_INPUTS_MAX:
        raise Refused(400, f"at most {EMBEDDING_INPUTS_MAX} inputs a request, got {len(prompts)}.", "input")
    ask = body.ask(prompts, None)
    return replace(ask, dimensions=body.dimensions, as_base64=body.encoding_format == "base64")


def parse_responses(raw: bytes) -> Ask:
    body = _decode(raw, _Responses)
    turns = [{"role": "user", "content": body.input}] if isinstance(body.input, str) else body.input
    preamble = [*(body.tools or ()), *([body.instructions] if body.instructions else ())]
    return body.ask([render_chat(turns, preamble)], body.max_output_tokens)


def parse_messages(raw: bytes) -> Ask:
    body = _decode(raw, _Messages)
    system = [body.system] if isinstance(body.system, str) else body.system or []
    return body.ask([render_chat(body.messages, [*(body.tools or ()), *system])], body.max_tokens)


def parse_tokenize(raw: bytes) -> Ask:
    body = _decode(raw, _Tokenize)
    if body.messages is not None:
        return body.ask([render_chat(body.messages)], None)
    return body.ask([pad(body.prompt or "")], None)

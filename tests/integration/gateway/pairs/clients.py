"""The vendors' own clients, asking as their users do, and what the objects that they give back hold."""

import json
from collections.abc import Iterable
from typing import Any, Protocol

from openai import APIError, OpenAI, Stream
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response

from kinference.vocabulary import Api
from tests.integration.gateway.pairs.answers_openai import arguments
from tests.integration.gateway.pairs.meaning import (
    Asked,
    Before,
    Call,
    Document,
    Got,
    Picture,
    Replayed,
    Results,
    Tokens,
    Turn,
    User,
)

WARNINGS = "x-kinference-warnings"
_REPLAYED = ("role", "content", "tool_calls", "reasoning_content", "thinking_blocks")
"""What agents keep of a message of Chat's."""


class Client(Protocol):
    """One API's own client."""

    api: Api
    sdk: Any

    def ask(self, model: str, asked: Asked, *, streams: bool) -> Got: ...


def data_url(picture: Picture) -> str:
    return picture.url or f"data:{picture.mime};base64,{picture.data}"


def file_of(document: Document) -> Any:
    return {"filename": document.name, "file_data": f"data:{document.mime};base64,{document.data}"}


def parsed(id_: str, name: str, text: str) -> Call:
    """A call whose arguments can be read."""
    return Call(id_, name, json.loads(text))


class ChatClient:
    """`openai`, Chat Completions."""

    api = Api.OPENAI_CHAT

    def __init__(self, url: str) -> None:
        self.sdk = OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0, _strict_response_validation=True)

    def ask(self, model: str, asked: Asked, *, streams: bool) -> Got:
        options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}} if streams else {}
        raw = self.sdk.chat.completions.with_raw_response.create(
            model=model, messages=[*self._messages(asked)], **self._options(asked), **options
        )
        answer: Any = raw.parse()
        if isinstance(answer, Stream):
            answer = self._gathered(list(answer))
        assert isinstance(answer, ChatCompletion)
        return self._got(answer, raw.headers.get(WARNINGS, ""))

    def _options(self, asked: Asked) -> dict[str, Any]:
        options: dict[str, Any] = {"max_completion_tokens": asked.max_tokens}
        if asked.tools:
            options["tools"] = [
                {
                    "type": "function",
                    "function": {"name": one.name, "description": one.description, "parameters": one.schema},
                }
                for one in asked.tools
            ]
        if asked.stop:
            options["stop"] = [*asked.stop]
        if asked.schema:
            named = {"name": "answer", "schema": asked.schema, "strict": True}
            options["response_format"] = {"type": "json_schema", "json_schema": named}
        if asked.thinks:
            options["reasoning_effort"] = "medium"
        return {**options, **asked.options}

    def _messages(self, asked: Asked) -> Iterable[Any]:
        if asked.system:
            yield {"role": "system", "content": asked.system}
        for turn in asked.turns:
            yield from self._turn(turn)

    def _turn(self, turn: Turn) -> Iterable[Any]:
        if isinstance(turn, Replayed):
            yield turn.form
        elif isinstance(turn, Results):
            for result in turn.results:
                yield {"role": "tool", "tool_call_id": result.call.id, "content": result.text}
        elif isinstance(turn, Before):
            message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
            if turn.calls:
                message["tool_calls"] = [
                    {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": arguments(one)}}
                    for one in turn.calls
                ]
            yield message
        elif turn.pictures or turn.documents or turn.sounds:
            parts: list[Any] = [{"type": "text", "text": turn.text}]
            parts += ({"type": "image_url", "image_url": {"url": data_url(one)}} for one in turn.pictures)
            parts += ({"type": "file", "file": file_of(one)} for one in turn.documents)
            parts += (
                {"type": "input_audio", "input_audio": {"data": one.data, "format": "wav"}} for one in turn.sounds
            )
            yield {"role": "user", "content": parts}
        else:
            yield {"role": "user", "content": turn.text}

    def _gathered(self, chunks: list[ChatCompletionChunk]) -> ChatCompletion:
        """As the documentation adds chunks up."""
        message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
        calls: dict[int, Any] = {}
        finish, usage = None, None
        for chunk in chunks:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                assert finish is None, "nothing follows the end"
                finish = choice.finish_reason
                delta = choice.delta.to_dict()
                for key in ("content", "refusal", "reasoning_content"):
                    if delta.get(key):
                        message[key] = (message.get(key) or "") + str(delta[key])
                message.setdefault("thinking_blocks", []).extend(delta.get("thinking_blocks") or [])
                for part in choice.delta.tool_calls or ():
                    call = calls.setdefault(part.index, {"type": "function", "function": {"name": "", "arguments": ""}})
                    assert part.function is not None
                    if part.id:
                        call["id"] = part.id
                    call["function"]["name"] += part.function.name or ""
                    call["function"]["arguments"] += part.function.arguments or ""
        if calls:
            message["tool_calls"] = [calls[at] for at in sorted(calls)]
        if not message["thinking_blocks"]:
            del message["thinking_blocks"]
        told = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
        whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [told]}
        return ChatCompletion.model_validate({**whole, "usage": usage.to_dict() if usage else None})

    def _got(self, answer: ChatCompletion, warnings: str) -> Got:
        (choice,) = answer.choices
        message, held = choice.message, choice.message.to_dict()
        form = {name: held[name] for name in _REPLAYED if name in held}
        calls = tuple(
            parsed(one.id, one.function.name, one.function.arguments)
            for one in message.tool_calls or ()
            if one.type == "function"
        )
        text = (message.content or "") + (message.refusal or "")
        thought = str(held.get("reasoning_content", ""))
        return Got(text, thought, calls, choice.finish_reason, _chat_tokens(answer.usage), warnings, form)


def _chat_tokens(usage: Any) -> Tokens | None:
    if usage is None:
        return None
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else 0
    reasoned = usage.completion_tokens_details.reasoning_tokens if usage.completion_tokens_details else 0
    return Tokens(usage.prompt_tokens, cached or 0, usage.completion_tokens, reasoned or 0)


class ResponsesClient:
    """`openai`, Responses, as Codex and the Agents SDK use it: the client keeps the conversation."""

    api = Api.OPENAI_RESPONSES

    def __init__(self, url: str) -> None:
        self.sdk = OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0, _strict_response_validation=True)

    def ask(self, model: str, asked: Asked, *, streams: bool) -> Got:
        options: dict[str, Any] = {"stream": True} if streams else {}
        raw = self.sdk.responses.with_raw_response.create(
            model=model, input=[*self._items(asked)], store=False, **self._options(asked), **options
        )
        answer: Any = raw.parse()
        if isinstance(answer, Stream):
            events = list(answer)
            numbers = [event.sequence_number for event in events if event.type != "error"]
            assert numbers == list(range(len(numbers)))
            text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
            if events[-1].type == "error":
                raise APIError(events[-1].message, raw.http_request, body=None)
            answer = events[-1].response
            if events[-1].type == "response.failed":
                raise APIError(answer.error.message, raw.http_request, body=None)
            assert answer.output_text == text
        assert isinstance(answer, Response)
        return self._got(answer, raw.headers.get(WARNINGS, ""))

    def _options(self, asked: Asked) -> dict[str, Any]:
        options: dict[str, Any] = {"max_output_tokens": asked.max_tokens}
        if asked.system:
            options["instructions"] = asked.system
        if asked.tools:
            options["tools"] = [
                {
                    "type": "function",
                    "name": one.name,
                    "description": one.description,
                    "parameters": one.schema,
                    "strict": False,
                }
                for one in asked.tools
            ]
        if asked.schema:
            named = {"type": "json_schema", "name": "answer", "schema": asked.schema, "strict": True}
            options["text"] = {"format": named}
        if asked.thinks:
            options["reasoning"] = {"effort": "medium", "summary": "auto"}
            options["include"] = ["reasoning.encrypted_content"]
        return {**options, **asked.options}

    def _items(self, asked: Asked) -> Iterable[Any]:
        for turn in asked.turns:
            yield from self._turn(turn)

    def _turn(self, turn: Turn) -> Iterable[Any]:
        if isinstance(turn, Replayed):
            yield from turn.form
        elif isinstance(turn, Results):
            for result in turn.results:
                yield {"type": "function_call_output", "call_id": result.call.id, "output": result.text}
        elif isinstance(turn, Before):
            if turn.text:
                said = {"type": "output_text", "text": turn.text, "annotations": []}
                yield {"type": "message", "id": "msg_9", "status": "completed", "role": "assistant", "content": [said]}
            for one in turn.calls:
                yield {
                    "type": "function_call",
                    "call_id": one.id,
                    "name": one.name,
                    "arguments": arguments(one),
                }
        else:
            shown = ({"type": "input_image", "image_url": data_url(one), "detail": "auto"} for one in turn.pictures)
            read = ({"type": "input_file", **file_of(one)} for one in turn.documents)
            yield {"role": "user", "content": [{"type": "input_text", "text": turn.text}, *shown, *read]}

    def _got(self, answer: Response, warnings: str) -> Got:
        text, thought, calls = "", "", []
        for item in answer.output:
            if item.type == "reasoning":
                thought += "".join(part.text for part in item.summary)
            elif item.type == "message":
                text += "".join(part.text if part.type == "output_text" else part.refusal for part in item.content)
            elif item.type == "function_call":
                calls.append(parsed(item.call_id, item.name, item.arguments))
        details = answer.incomplete_details
        ending = str(details.reason) if details else str(answer.status)
        form = [item.to_dict() for item in answer.output]
        return Got(text, thought, tuple(calls), ending, self._tokens(answer), warnings, form)

    def _tokens(self, answer: Response) -> Tokens | None:
        if (usage := answer.usage) is None:
            return None
        assert usage.total_tokens == usage.input_tokens + usage.output_tokens
        cached = usage.input_tokens_details.cached_tokens
        return Tokens(usage.input_tokens, cached, usage.output_tokens, usage.output_tokens_details.reasoning_tokens)


class CompletionsClient:
    """`openai`, the older Completions: one prompt and no more."""

    api = Api.OPENAI_COMPLETIONS

    def __init__(self, url: str) -> None:
        # not strict: the SDK's own type forgot that a reason is null until the last chunk
        self.sdk = OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)

    def ask(self, model: str, asked: Asked, *, streams: bool) -> Got:
        options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}} if streams else {}
        if asked.stop:
            options["stop"] = [*asked.stop]
        (turn,) = asked.turns
        assert isinstance(turn, User)
        raw = self.sdk.completions.with_raw_response.create(
            model=model, prompt=turn.text, max_tokens=asked.max_tokens, **options
        )
        answer: Any = raw.parse()
        chunks: list[Completion] = list(answer) if isinstance(answer, Stream) else [answer]
        choices = [choice for chunk in chunks for choice in chunk.choices]
        text = "".join(choice.text for choice in choices)
        usage = next((chunk.usage for chunk in reversed(chunks) if chunk.usage), None)
        assert all(choice.finish_reason is None for choice in choices[:-1])
        return Got(text, "", (), choices[-1].finish_reason, _chat_tokens(usage), raw.headers.get(WARNINGS, ""), None)

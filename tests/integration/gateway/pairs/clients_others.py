"""Anthropic's own client and Google's, asking as their users do."""

import base64
from collections.abc import Iterable
from typing import Any

from anthropic import Anthropic
from anthropic.types import Message
from google import genai
from google.genai import types as google

from kinference.vocabulary import Api
from tests.integration.gateway.pairs.clients import WARNINGS
from tests.integration.gateway.pairs.meaning import Asked, Before, Call, Got, Picture, Replayed, Results, Tokens, Turn


class MessagesClient:
    """`anthropic`, as agents use it: what was answered goes back as it came."""

    api = Api.ANTHROPIC_MESSAGES

    def __init__(self, url: str) -> None:
        self.sdk = Anthropic(base_url=url, api_key="x", max_retries=0, _strict_response_validation=True)

    def ask(self, model: str, asked: Asked, *, streams: bool) -> Got:
        options: dict[str, Any] = {
            "model": model,
            "max_tokens": asked.max_tokens,
            "messages": [self._turn(turn) for turn in asked.turns],
            **self._options(asked),
        }
        if streams:
            with self.sdk.messages.stream(**options) as stream:
                return self._got(stream.get_final_message(), stream.response.headers.get(WARNINGS, ""))
        raw = self.sdk.messages.with_raw_response.create(**options)
        return self._got(raw.parse(), raw.headers.get(WARNINGS, ""))

    def _options(self, asked: Asked) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if asked.system:
            options["system"] = asked.system
        if asked.tools:
            options["tools"] = [
                {"name": one.name, "description": one.description, "input_schema": one.schema} for one in asked.tools
            ]
        if asked.stop:
            options["stop_sequences"] = [*asked.stop]
        if asked.schema:
            options["output_config"] = {"format": {"type": "json_schema", "schema": asked.schema}}
        if asked.thinks:
            options["thinking"] = {"type": "adaptive"}
            options["output_config"] = {"effort": "medium"}
        return {**options, **asked.options}

    def _turn(self, turn: Turn) -> Any:
        if isinstance(turn, Replayed):
            return {"role": "assistant", "content": turn.form}
        if isinstance(turn, Results):
            results = [{"type": "tool_result", "tool_use_id": one.call.id, "content": one.text} for one in turn.results]
            return {"role": "user", "content": results}
        if isinstance(turn, Before):
            said: list[Any] = [{"type": "text", "text": turn.text}] if turn.text else []
            said += ({"type": "tool_use", "id": one.id, "name": one.name, "input": one.arguments} for one in turn.calls)
            return {"role": "assistant", "content": said}
        if not (turn.pictures or turn.documents):
            return {"role": "user", "content": turn.text}
        parts: list[Any] = [{"type": "text", "text": turn.text}]
        parts += ({"type": "image", "source": self._source(picture)} for picture in turn.pictures)
        for one in turn.documents:
            source = {"type": "base64", "media_type": one.mime, "data": one.data}
            parts.append({"type": "document", "source": source, "title": one.name})
        return {"role": "user", "content": parts}

    def _source(self, picture: Picture) -> Any:
        if picture.url:
            return {"type": "url", "url": picture.url}
        return {"type": "base64", "media_type": picture.mime, "data": picture.data}

    def _got(self, answer: Message, warnings: str) -> Got:
        text, thought, calls = "", "", []
        for block in answer.content:
            if block.type == "text":
                text += block.text
            elif block.type == "thinking":
                thought += block.thinking
            elif block.type == "tool_use":
                assert isinstance(block.input, dict)
                calls.append(Call(block.id, block.name, block.input))
        usage = answer.usage
        cached, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
        details = usage.output_tokens_details
        reasoned = details.thinking_tokens if details else 0
        tokens = Tokens(usage.input_tokens + cached + written, cached, usage.output_tokens, reasoned or 0)
        ending = str(answer.stop_reason) + (f" {answer.stop_sequence}" if answer.stop_sequence else "")
        form = [block.to_dict() for block in answer.content]
        return Got(text, thought, tuple(calls), ending, tokens, warnings, form)


class GeminiClient:
    """`google-genai`, without its automatic calling of functions."""

    api = Api.GEMINI

    def __init__(self, url: str) -> None:
        self.sdk = genai.Client(api_key="x", http_options=google.HttpOptions(base_url=url))

    def ask(self, model: str, asked: Asked, *, streams: bool) -> Got:
        contents: Any = [self._turn(turn) for turn in asked.turns]
        config = google.GenerateContentConfig(**self._options(asked))
        if streams:
            answers = list(self.sdk.models.generate_content_stream(model=model, contents=contents, config=config))
        else:
            answers = [self.sdk.models.generate_content(model=model, contents=contents, config=config)]
        return self._got(answers)

    def _options(self, asked: Asked) -> dict[str, Any]:
        options: dict[str, Any] = {"max_output_tokens": asked.max_tokens}
        if asked.system:
            options["system_instruction"] = asked.system
        if asked.tools:
            declared = [
                google.FunctionDeclaration(
                    name=one.name, description=one.description, parameters_json_schema=one.schema
                )
                for one in asked.tools
            ]
            options["tools"] = [google.Tool(function_declarations=declared)]
            options["automatic_function_calling"] = google.AutomaticFunctionCallingConfig(disable=True)
        if asked.stop:
            options["stop_sequences"] = [*asked.stop]
        if asked.schema:
            options |= {"response_mime_type": "application/json", "response_json_schema": asked.schema}
        if asked.thinks:
            options["thinking_config"] = google.ThinkingConfig(thinking_budget=2048, include_thoughts=True)
        return {**options, **asked.options}

    def _turn(self, turn: Turn) -> google.Content:
        if isinstance(turn, Replayed):
            assert isinstance(turn.form, google.Content)
            return turn.form
        return google.Content(role="model" if isinstance(turn, Before) else "user", parts=[*self._parts(turn)])

    def _parts(self, turn: Turn) -> Iterable[google.Part]:
        if isinstance(turn, Results):
            for result in turn.results:
                answered = google.FunctionResponse(
                    id=result.call.id, name=result.call.name, response={"output": result.text}
                )
                yield google.Part(function_response=answered)
        elif isinstance(turn, Before):
            if turn.text:
                yield google.Part(text=turn.text)
            for call in turn.calls:
                yield google.Part(function_call=google.FunctionCall(id=call.id, name=call.name, args=call.arguments))
        elif not isinstance(turn, Replayed):
            yield google.Part(text=turn.text)
            yield from (self._picture(picture) for picture in turn.pictures)
            held = [(one.data, one.mime) for one in turn.documents] + [(one.data, "audio/wav") for one in turn.sounds]
            for data, mime in held:
                yield google.Part.from_bytes(data=base64.b64decode(data), mime_type=mime)

    def _picture(self, picture: Picture) -> google.Part:
        if picture.url:
            return google.Part.from_uri(file_uri=picture.url, mime_type=picture.mime)
        return google.Part.from_bytes(data=base64.b64decode(picture.data), mime_type=picture.mime)

    def _got(self, answers: list[google.GenerateContentResponse]) -> Got:
        parts: list[google.Part] = []
        ending = ""
        for answer in answers:
            for candidate in answer.candidates or ():
                parts += (candidate.content and candidate.content.parts) or ()
                ending = candidate.finish_reason.value if candidate.finish_reason else ending
        text = "".join(part.text or "" for part in parts if not part.thought)
        thought = "".join(part.text or "" for part in parts if part.thought)
        calls = tuple(
            Call(part.function_call.id or "", part.function_call.name or "", part.function_call.args or {})
            for part in parts
            if part.function_call
        )
        usage = next((answer.usage_metadata for answer in reversed(answers) if answer.usage_metadata), None)
        http = answers[0].sdk_http_response
        headers = {name.lower(): value for name, value in ((http and http.headers) or {}).items()}
        form = google.Content(role="model", parts=parts)
        return Got(text, thought, calls, ending, self._tokens(usage), headers.get(WARNINGS, ""), form)

    def _tokens(self, usage: google.GenerateContentResponseUsageMetadata | None) -> Tokens | None:
        if usage is None:
            return None
        reasoned = usage.thoughts_token_count or 0
        completion = (usage.candidates_token_count or 0) + reasoned
        prompt = usage.prompt_token_count or 0
        assert usage.total_token_count == prompt + completion
        return Tokens(prompt, usage.cached_content_token_count or 0, completion, reasoned)

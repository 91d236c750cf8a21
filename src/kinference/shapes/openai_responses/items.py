"""The items of a streamed response, each with the events of its life."""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol, TypeAlias

from msgspec.structs import replace

from kinference.shapes.citations import Citation, to_responses
from kinference.shapes.code_execution import to_responses as to_responses_run
from kinference.shapes.ir import Executed, Image, Json, Reasoning, Sealed, Searched, ToolCall
from kinference.shapes.json_text import dumps
from kinference.shapes.logprobs import Logprobs
from kinference.shapes.made_images import to_responses as to_responses_image
from kinference.shapes.openai_responses.answer import call_item, message_item, reasoning_item, text_part
from kinference.shapes.openai_responses.client_tools import commands_of
from kinference.shapes.web_search import made_to_responses

Events: TypeAlias = list[tuple[str, Json]]
ADDED: Final = "response.output_item.added"
DONE: Final = "response.output_item.done"


class Item(Protocol):
    """One item of output."""

    def begun(self) -> Events:
        """What opens it."""
        ...

    def grown(self, text: str) -> Events:
        """What one more piece of it is."""
        ...

    def done(self) -> Events:
        """What closes it."""
        ...

    def whole(self) -> Json:
        """All of it."""
        ...


class TextItem:
    """A message of text."""

    _name = "output_text"

    def __init__(self, suffix: str) -> None:
        self._id = f"msg_{suffix}"
        self._pieces: list[str] = []
        self._logprobs: list[Json] = []
        self._annotations: list[Json] = []

    @property
    def characters(self) -> int:
        """How many it has so far."""
        return sum(map(len, self._pieces))

    def cited(self, citation: Citation, before: int) -> Events:
        """It rests on a page; so many characters of text came before the item."""
        annotation = to_responses(citation, before)
        self._annotations.append(annotation)
        told = {**self._at, "annotation_index": len(self._annotations) - 1, "annotation": annotation}
        return [("response.output_text.annotation.added", told)]

    def extended(self, text: str) -> bytes:
        """The members of the one event that `grown` gives, written."""
        self._pieces.append(text)
        return b'"item_id":"%b","content_index":0,"delta":%b,"logprobs":[]' % (self._id.encode(), dumps(text))

    def begun(self) -> Events:
        started = message_item(self._id, [], "in_progress")
        return [
            (ADDED, {"item": started}),
            ("response.content_part.added", {**self._at, "part": self._part("")}),
        ]

    def grown(self, text: str, logprobs: Logprobs = ()) -> Events:
        self._pieces.append(text)
        self._logprobs += logprobs
        return [(f"response.{self._name}.delta", {**self._at, "delta": text, **self._odds(logprobs)})]

    def done(self) -> Events:
        text = "".join(self._pieces)
        return [
            (f"response.{self._name}.done", {**self._at, **self._said(text), **self._odds(self._logprobs)}),
            ("response.content_part.done", {**self._at, "part": self._part(text)}),
            (DONE, {"item": self.whole()}),
        ]

    def whole(self) -> Json:
        return message_item(self._id, [self._part("".join(self._pieces))])

    @property
    def _at(self) -> Json:
        return {"item_id": self._id, "content_index": 0}

    def _odds(self, logprobs: Sequence[Json]) -> Json:
        return {"logprobs": list(logprobs)}

    def _said(self, text: str) -> Json:
        return {"text": text}

    def _part(self, text: str) -> Json:
        return text_part(text, self._logprobs, self._annotations) if text else text_part(text)


class RefusalItem(TextItem):
    """A message that declines."""

    _name = "refusal"

    def _odds(self, logprobs: Sequence[Json]) -> Json:  # noqa: ARG002 - a refusal has none
        return {}

    def _said(self, text: str) -> Json:
        return {"refusal": text}

    def _part(self, text: str) -> Json:
        return {"type": "refusal", "refusal": text}


class CallItem:
    """A call."""

    def __init__(self, suffix: str, call: ToolCall) -> None:
        self._id = f"fc_{suffix}"
        self._call = call
        self._pieces: list[str] = []
        self._name = "custom_tool_call_input" if call.is_free_form else "function_call_arguments"

    def begun(self) -> Events:
        return [(ADDED, {"item": call_item(self._id, self._call, "in_progress")})]

    def grown(self, text: str) -> Events:
        self._pieces.append(text)
        if self._call.form:  # which comes whole
            return []
        return [(f"response.{self._name}.delta", {"item_id": self._id, "delta": text})]

    def done(self) -> Events:
        text = "".join(self._pieces) or ("" if self._call.is_free_form else "{}")
        said = {"input": text} if self._call.is_free_form else {"name": self._call.name, "arguments": text}
        self._call = replace(self._call, arguments=text)
        if self._call.form:
            return [*self._commanded(), (DONE, {"item": self.whole()})]
        return [(f"response.{self._name}.done", {"item_id": self._id, **said}), (DONE, {"item": self.whole()})]

    def whole(self) -> Json:
        return call_item(self._id, self._call)

    def _commanded(self) -> Iterator[tuple[str, Json]]:
        """The commands for a shell, each begun, told and done."""
        for at, command in enumerate(commands_of(self.whole())):
            place = {"command_index": at}
            yield "response.shell_call_command.added", {**place, "command": ""}
            yield "response.shell_call_command.delta", {**place, "delta": command}
            yield "response.shell_call_command.done", {**place, "command": command}


class ImageItem:
    """An image that was made."""

    def __init__(self, suffix: str, image: Image) -> None:
        self._id = f"ig_{suffix}"
        self._image = image

    def begun(self) -> Events:
        return [(ADDED, {"item": to_responses_image(self._id, None)})]

    def grown(self, text: str) -> Events:  # noqa: ARG002 - it comes whole
        return []

    def done(self) -> Events:
        completed = ("response.image_generation_call.completed", {"item_id": self._id})
        return [completed, (DONE, {"item": self.whole()})]

    def whole(self) -> Json:
        return to_responses_image(self._id, self._image)


class CodeItem:
    """Code that was run."""

    def __init__(self, suffix: str, ran: Executed) -> None:
        self._id = f"ci_{suffix}"
        self._ran = ran

    def begun(self) -> Events:
        return [
            (ADDED, {"item": to_responses_run(self._id, Executed(), "in_progress")}),
            ("response.code_interpreter_call.in_progress", {"item_id": self._id}),
        ]

    def grown(self, text: str) -> Events:  # noqa: ARG002 - it comes whole
        return []

    def done(self) -> Events:
        return [
            ("response.code_interpreter_call_code.delta", {"item_id": self._id, "delta": self._ran.code}),
            ("response.code_interpreter_call_code.done", {"item_id": self._id, "code": self._ran.code}),
            ("response.code_interpreter_call.interpreting", {"item_id": self._id}),
            ("response.code_interpreter_call.completed", {"item_id": self._id}),
            (DONE, {"item": self.whole()}),
        ]

    def whole(self) -> Json:
        return to_responses_run(self._id, self._ran)


class SearchItem:
    """A search that was made."""

    def __init__(self, suffix: str, made: Searched) -> None:
        self._id = f"ws_{suffix}"
        self._made = made

    def begun(self) -> Events:
        return [
            (ADDED, {"item": made_to_responses(self._id, self._made, "in_progress")}),
            ("response.web_search_call.in_progress", {"item_id": self._id}),
            ("response.web_search_call.searching", {"item_id": self._id}),
        ]

    def grown(self, text: str) -> Events:  # noqa: ARG002 - it comes whole
        return []

    def done(self) -> Events:
        completed = ("response.web_search_call.completed", {"item_id": self._id})
        return [completed, (DONE, {"item": self.whole()})]

    def whole(self) -> Json:
        return made_to_responses(self._id, self._made)


class ReasoningItem:
    """What was thought, and at its end the seal that its issuer wants back."""

    def __init__(self, suffix: str) -> None:
        self._id = f"rs_{suffix}"
        self._pieces: list[str] = []
        self._seal: Reasoning | Sealed | None = None

    def seal(self, thought: Reasoning | Sealed) -> None:
        """Its issuer signed it."""
        self._seal = thought

    def begun(self) -> Events:
        return [(ADDED, {"item": reasoning_item(self._id, Reasoning(""))})]

    def grown(self, text: str) -> Events:
        first = not self._pieces
        self._pieces.append(text)
        part = ("response.reasoning_summary_part.added", {**self._at, "part": {"type": "summary_text", "text": ""}})
        delta = ("response.reasoning_summary_text.delta", {**self._at, "delta": text})
        return [part, delta] if first else [delta]

    def done(self) -> Events:
        text = "".join(self._pieces)
        part = {"type": "summary_text", "text": text}
        said = [
            ("response.reasoning_summary_text.done", {**self._at, "text": text}),
            ("response.reasoning_summary_part.done", {**self._at, "part": part}),
        ]
        return [*(said if self._pieces else ()), (DONE, {"item": self.whole()})]

    def whole(self) -> Json:
        text = "".join(self._pieces)
        if self._seal is None:
            return reasoning_item(self._id, Reasoning(text))
        thought = replace(self._seal, text=text) if isinstance(self._seal, Reasoning) else self._seal
        return reasoning_item(self._id, thought)

    @property
    def _at(self) -> Json:
        return {"item_id": self._id, "summary_index": 0}

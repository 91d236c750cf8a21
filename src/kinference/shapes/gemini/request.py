"""A generateContent request read into the one representation."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final

from msgspec.structs import replace

from kinference.shapes import media
from kinference.shapes.code_execution import of_gemini as of_gemini_run
from kinference.shapes.extras import extras
from kinference.shapes.gemini.fields import DEFAULTS, FIELDS, camel
from kinference.shapes.gemini.settings import format_of, runs_code, search_of, thinking_of, tool_choice_of, tools_of
from kinference.shapes.ir import (
    ASSISTANT,
    USER,
    Audio,
    Block,
    File,
    Image,
    Json,
    Media,
    Reasoning,
    Request,
    Sampling,
    Sealed,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from kinference.shapes.json_text import bool_of, count_of, dumps, list_of, number_of, object_of, string_of, strings_of
from kinference.shapes.lost import Untranslatable
from kinference.shapes.made_images import wants_images
from kinference.shapes.openai_chat.request import answers_of
from kinference.shapes.scan import BadBody
from kinference.shapes.seals import from_base64, unsealed
from kinference.vocabulary import Api

_DETAILS: Final = {
    "MEDIA_RESOLUTION_LOW": "low",
    "MEDIA_RESOLUTION_MEDIUM": "auto",
    "MEDIA_RESOLUTION_HIGH": "high",
    "MEDIA_RESOLUTION_ULTRA_HIGH": "original",
}
_TIERLESS: Final = "unspecified"
_TOLD: Final = {"output", "result", "error"}
"""Under which clients put all that a function had to say."""


def parse_request(body: Json) -> Request:
    """Read a request. Raises BadBody."""
    body = camel(body)
    if (whole := body.get("generateContentRequest")) is not None:  # as a question for its tokens may hold it
        body = camel(object_of(whole, "generateContentRequest"))
    config = camel(object_of(body.get("generationConfig") or {}, "generationConfig"))
    tools = tools_of(body.get("tools"))
    unlike = (*extras(body, FIELDS, "", DEFAULTS), *extras(config, FIELDS, "generationConfig", DEFAULTS))
    return Request(
        system=tuple(_system(body.get("systemInstruction"))),
        turns=tuple(_Contents().turns(body.get("contents"))),
        tools=tools,
        wants_images=wants_images(config.get("responseModalities"), "generationConfig.responseModalities"),
        runs_code=runs_code(body.get("tools")),
        web_search=search_of(body.get("tools")),
        tool_choice=tool_choice_of(body.get("toolConfig")) if tools else None,
        max_tokens=count_of(config.get("maxOutputTokens"), "generationConfig.maxOutputTokens"),
        sampling=_sampling(config),
        stop=strings_of(config.get("stopSequences"), "generationConfig.stopSequences"),
        thinking=thinking_of(config.get("thinkingConfig")),
        format=format_of(config),
        wants_usage=True,
        service_tier=_tier(body.get("serviceTier")),
        answers=answers_of(config.get("candidateCount"), "generationConfig.candidateCount"),
        logprobs=_logprobs(config),
        extras=unlike,
    )


def _tier(value: object) -> str:
    tier = string_of(value, "serviceTier").lower().removeprefix("service_tier_")
    return "" if tier == _TIERLESS else tier


def _logprobs(config: Json) -> int | None:
    tops = count_of(config.get("logprobs"), "generationConfig.logprobs")
    is_wanted = bool_of(config.get("responseLogprobs"), "generationConfig.responseLogprobs")
    return tops or 0 if is_wanted else None


def _sampling(config: Json) -> Sampling:
    names = ("temperature", "topP", "topK", "seed", "frequencyPenalty", "presencePenalty")
    temperature, top_p, top_k, seed, frequency, presence = (
        number_of(config.get(name), f"generationConfig.{name}") for name in names
    )
    top_k = None if top_k is None else int(top_k)  # which Google's own client writes as 40.0
    return Sampling(temperature, top_p, top_k, None, seed, frequency, presence)


def _system(value: object) -> Iterator[Text]:
    if isinstance(value, str):
        value = {"parts": [{"text": value}]}
    content = object_of(value or {}, "systemInstruction")
    for part in _list(content.get("parts"), "systemInstruction.parts"):
        if text := string_of(object_of(part, "systemInstruction.parts").get("text"), "systemInstruction.parts"):
            yield Text(text)


def _list(value: object, where: str) -> Sequence[object]:
    """A list, or the one thing that stands for a list of itself."""
    return [value] if isinstance(value, dict) else list_of(value, where)


class _Contents:
    """The conversation. Calls without an id get one from where they stand; their results find it by name and order, and
    so do those that a client gave ids of its own making.
    """

    def __init__(self) -> None:
        self._open: dict[str, OrderedDict[str, None]] = {}  # ids of calls to be answered, by name
        self._made: dict[str, OrderedDict[str, None]] = {}  # those of them that are ours

    def turns(self, contents: object) -> Iterator[Turn]:
        found = _list(contents, "contents")
        if not found:
            raise BadBody("contents: empty; the body has to carry its prompt")
        for at, value in enumerate(found):
            where = f"contents[{at}]"
            content = {"parts": [{"text": value}]} if isinstance(value, str) else object_of(value, where)
            role = ASSISTANT if content.get("role") == "model" else USER
            blocks: list[Block] = []
            for n, part in enumerate(_list(content.get("parts"), f"{where}.parts")):
                place = f"{where}.parts[{n}]"
                if (plain := self._plain(part, place)) is not None:
                    blocks.append(plain)
                else:
                    blocks += self._blocks(camel(object_of(part, place)), place)
            yield Turn(role, tuple(_whole_thoughts(blocks) if Reasoning in map(type, blocks) else blocks))

    def _plain(self, part: object, where: str) -> Block | None:
        """A part as most are, a text or a call or its result and nothing beside it; None of any other."""
        if type(part) is not dict or len(part) != 1:
            return None
        [(kind, value)] = part.items()
        if kind == "text":
            return Text(value) if type(value) is str and value else None
        if type(value) is not dict:
            return None
        if kind == "functionCall":
            return self._call(value, where)
        return self._result(camel(value), where) if kind == "functionResponse" else None

    def _blocks(self, part: Json, where: str) -> Iterator[Block]:
        """The block of a part, and before it what Google sealed; a thought that another signed is one with its seal."""
        if len(part) > 1 or "thoughtSignature" in part:
            signature = string_of(part.get("thoughtSignature"), f"{where}.thoughtSignature")
            if thought := unsealed(from_base64(signature), string_of(part.get("text"), f"{where}.text")):
                yield thought
                return
            if signature:
                yield Sealed(signature, Api.GEMINI)
        if (block := self._block(part, where)) is not None:
            yield block

    def _block(self, part: Json, where: str) -> Block | None:
        if part.get("functionCall") is not None:
            return self._call(camel(object_of(part["functionCall"], where)), where)
        if part.get("functionResponse") is not None:
            return self._result(camel(object_of(part["functionResponse"], where)), where)
        if part.get("inlineData") is not None:
            return _looked_at(_inline(camel(object_of(part["inlineData"], where)), where), part)
        if part.get("fileData") is not None:
            return _looked_at(_linked(camel(object_of(part["fileData"], where)), where), part)
        text = part.get("text")
        if text is None and (ran := of_gemini_run(part)) is not None:
            return ran
        if text is None:
            for _ in extras(part, FIELDS, "part", {}):
                raise BadBody(f"{where}: unknown; give text, inlineData, fileData, functionCall or functionResponse")
            return None
        text = string_of(text, f"{where}.text")
        if part.get("thought") is True:
            return Reasoning(text) if text else None
        return Text(text) if text else None

    def _call(self, call: Json, where: str) -> ToolCall:
        name = string_of(call.get("name"), f"{where}.functionCall.name")
        call_id = string_of(call.get("id"), f"{where}.functionCall.id")
        if not call_id:
            call_id = _made_id(where)
            self._made.setdefault(name, OrderedDict())[call_id] = None
        self._open.setdefault(name, OrderedDict())[call_id] = None
        arguments = dumps(object_of(call.get("args") or {}, f"{where}.functionCall.args")).decode()
        return ToolCall(call_id, name, arguments)

    def _result(self, result: Json, where: str) -> ToolResult:
        name = string_of(result.get("name"), f"{where}.functionResponse.name")
        waiting: dict[str, None] = self._open.get(name, {})
        made: dict[str, None] = self._made.get(name, {})
        call_id = string_of(result.get("id"), f"{where}.functionResponse.id")
        if not call_id:
            call_id = next(iter(waiting), name)
        elif call_id not in waiting:
            call_id = next(iter(made), call_id)
        waiting.pop(call_id, None)
        made.pop(call_id, None)
        response = object_of(result.get("response") or {}, f"{where}.functionResponse.response")
        value = next(iter(response.values())) if len(response) == 1 and not _TOLD.isdisjoint(response) else response
        text = value if isinstance(value, str) else dumps(value).decode()
        parts = _list(result.get("parts"), where)
        shown = [self._shown(part, f"{where}.functionResponse.parts") for part in parts]
        return ToolResult(call_id, (*((Text(text),) if text else ()), *shown), "error" in response)

    def _shown(self, part: object, where: str) -> Block:
        """What a result shows beside its text."""
        block = self._block(camel(object_of(part, where)), where)
        if not isinstance(block, Image | File | Audio):
            raise BadBody(f"{where}: unknown; give inlineData or fileData")
        return block


def _made_id(where: str) -> str:
    """The id of a call that has none, from where it stands."""
    return f"call_{blake2b(where.encode(), digest_size=8).hexdigest()}"


def _whole_thoughts(blocks: Sequence[Block]) -> Iterator[Block]:
    """A client of a stream has a thought in pieces, and its seal with the last."""
    pieces: list[Reasoning] = []
    for block in blocks:
        if isinstance(block, Reasoning) and block.issuer is None:
            pieces.append(block)
            continue
        if isinstance(block, Reasoning):
            yield replace(block, text="".join(piece.text for piece in (*pieces, block)))
        else:
            yield from pieces
            yield block
        pieces = []
    yield from pieces


def _looked_at(block: Block, part: Json) -> Block:
    """The block, an image with how closely the model is to look at it."""
    resolution = part.get("mediaResolution")
    if not isinstance(block, Image) or not isinstance(resolution, dict):
        return block
    return replace(block, detail=_DETAILS.get(str(resolution.get("level")).upper(), ""))


def _inline(blob: Json, where: str) -> Block:
    mime = media.normal(string_of(blob.get("mimeType"), f"{where}.inlineData.mimeType"))
    data = media.plain_base64(string_of(blob.get("data"), f"{where}.inlineData.data"), where)
    data = data.replace("-", "+").replace("_", "/")  # where it is URL-safe
    if mime.startswith("image/"):
        return Image(media.image(Media(mime=mime, data=data), where))
    if mime.startswith("audio/"):
        return Audio(Media(mime=mime, data=data))
    _check_still(mime, where)
    if mime.startswith("text/"):
        return File(Media(), text=media.decoded_text(data, where))
    return File(Media(mime=mime, data=data))


def _linked(file: Json, where: str) -> Block:
    source = media.from_url(string_of(file.get("fileUri"), f"{where}.fileData.fileUri"), where)
    mime = media.normal(string_of(file.get("mimeType"), f"{where}.fileData.mimeType")) or media.type_of(source.url)
    _check_still(mime, where)
    if source.url.startswith("gs://") or "generativelanguage.googleapis.com" in source.url:
        source = Media(file_id=source.url)
    else:
        source = Media(mime=mime, url=source.url)
    return Image(source) if mime.startswith("image/") else File(source)


def _check_still(mime: str, where: str) -> None:
    if mime.startswith("video/"):
        raise Untranslatable(f"{where}: no destination of another API can carry a video")

"""Images that a model makes: how they are asked for, come in answers and stand in the history, in every API's form."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kinference.shapes import media
from kinference.shapes.ir import ASSISTANT, USER, Image, Json, Media, Text, Turn
from kinference.shapes.json_text import strings_of
from kinference.shapes.lost import Untranslatable
from kinference.shapes.scan import BadBody

CALL: Final = "image_generation_call"
TOOL: Final = "image_generation"
_NOTE: Final = Text("[an image that the assistant made]")
_PNG: Final = "image/png"


# --- asked for --------------------------------------------------------------------------------------


def wants_images(modalities: object, where: str) -> bool:
    """Whether these kinds of answers have images among them. Raises BadBody, Untranslatable where they have more."""
    kinds = {kind.lower() for kind in strings_of(modalities, where)}
    if kinds - {"text", "image"}:
        raise Untranslatable(f"{where}: no destination of another API can carry it")
    return "image" in kinds


def is_maker(tool: object) -> bool:
    """Whether a tool of Responses makes images."""
    return isinstance(tool, dict) and tool.get("type") == TOOL


# --- in answers -------------------------------------------------------------------------------------


def of_chat(images: object) -> Iterator[Image]:
    """Of a message or a delta, as those who serve others' models in Chat give them."""
    for image in images if isinstance(images, list) else ():
        link = image.get("image_url") if isinstance(image, dict) else None
        yield from of_url(link.get("url") if isinstance(link, dict) else link)


def of_url(url: object) -> Iterator[Image]:
    """Of an address that holds one."""
    if not isinstance(url, str):
        return
    try:
        source = media.from_url(url, "image_url")
    except BadBody:
        return
    if source.data:
        yield made(source.data, source.mime)


def to_chat(images: Iterable[Image]) -> list[Json]:
    """As such a message or delta has them."""
    return [{"type": "image_url", "image_url": {"url": media.to_url(image.source)}} for image in images]


def of_responses(item: Mapping[str, Any]) -> Iterator[Image]:
    """Of an item that made one."""
    data = item.get("result")
    if isinstance(data, str) and data:
        yield made(data)


def to_responses(item_id: str, image: Image | None) -> Json:
    """An item that made one; None where it has yet to."""
    result = None if image is None else image.source.data
    return {"id": item_id, "type": CALL, "status": "completed" if result else "in_progress", "result": result}


def of_gemini(blob: object) -> Iterator[Image]:
    """Of what a part holds."""
    if isinstance(blob, dict) and isinstance(data := blob.get("data"), str):
        mime = blob.get("mimeType")
        if data and isinstance(mime, str) and mime.startswith("image/"):
            yield made(data.replace("-", "+").replace("_", "/"), mime)


def made(data: str, mime: str = "") -> Image:
    """An image by its true type."""
    return Image(Media(mime=media.true_type(data) or mime or _PNG, data=data))


# --- in the history ---------------------------------------------------------------------------------


def shown_by_user(turns: Iterable[Turn]) -> Iterator[Turn]:
    """The turns with the assistant's images in the user's next one, where the assistant can show none."""
    shown: tuple[Text | Image, ...] = ()
    for turn in turns:
        if turn.role is ASSISTANT:
            images = tuple(block for block in turn.blocks if type(block) is Image)
            shown += tuple(part for image in images for part in (_NOTE, image))
            blocks = tuple(block for block in turn.blocks if type(block) is not Image)
            yield turn if not images else Turn(turn.role, blocks, turn.name)
        elif turn.role is USER and shown:
            yield Turn(turn.role, (*shown, *turn.blocks), turn.name)
            shown = ()
        else:
            yield turn

"""Images and files as they travel inside bodies: data URLs, base64, and what the bytes really are."""

import base64
import binascii
from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit

from kinference.shapes.ir import Media
from kinference.shapes.scan import BadBody

IMAGE_TYPES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")

_MAGIC: Final = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG", "image/png"),
    (b"GIF8", "image/gif"),
    (b"%PDF", "application/pdf"),
)
_WHITE: Final = "".join(char for char in map(chr, range(128)) if char.isspace())
_BY_SUFFIX: Final = {
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "png": "image/png",
    "gif": "image/gif",
    "webp": "image/webp",
    "pdf": "application/pdf",
}
_AUDIO: Final = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav", "x-aac": "aac", "x-flac": "flac"}
_SNIFFED_CHARS: Final = 24
"""Base64 characters that hold the first bytes of any of those."""


def image(media: Media, where: str) -> Media:
    """The same image with its true type, whatever its label says: providers refuse a mismatch. Raises BadBody."""
    if not media.data:
        return media
    mime = true_type(media.data) or normal(media.mime)
    if mime not in IMAGE_TYPES:
        raise BadBody(f"{where}: unsupported image type; send JPEG, PNG, GIF or WebP")
    return Media(mime=mime, data=media.data)


def normal(mime: str) -> str:
    """A media type without parameters, in the usual spelling."""
    plain = mime.partition(";")[0].strip().lower()
    return "image/jpeg" if plain == "image/jpg" else plain


def true_type(data: str) -> str:
    """What base64 holds, by its first bytes; "" when they are none that we know."""
    try:
        head = base64.b64decode(data[:_SNIFFED_CHARS])
    except (binascii.Error, ValueError):
        return ""
    if head.startswith(b"RIFF") and head.startswith(b"WEBP", 8):
        return "image/webp"
    return next((mime for magic, mime in _MAGIC if head.startswith(magic)), "")


def audio_format(mime: str) -> str:
    """What OpenAI and AWS call a type of audio."""
    name = mime.removeprefix("audio/")
    return _AUDIO.get(name, name)


def type_of(url: str) -> str:
    """What a URL's path says of its type; "" where it says nothing that we know."""
    suffix = urlsplit(url).path.rpartition(".")[2].lower()
    return _BY_SUFFIX.get(suffix, "")


def from_url(url: str, where: str) -> Media:
    """A data URL taken apart, or any other URL as it is. Raises BadBody."""
    if url[:5].lower() != "data:":
        if url[:8].lower().startswith(("http://", "https://", "gs://", "s3://")):
            return Media(url=url)
        raise BadBody(f"{where}: not a URL; give http, https or data")
    head, comma, payload = url[5:].partition(",")
    if not comma:
        raise BadBody(f"{where}: a data URL without a comma")
    is_base64 = head.lower().rstrip().endswith(";base64")
    mime = normal(head) or "text/plain"
    if not is_base64:
        return Media(mime=mime, data=base64.b64encode(unquote_to_bytes(payload)).decode())
    return Media(mime=mime, data=plain_base64(payload, where))


def from_data(data: str, where: str) -> Media:
    """A file, as a data URL or as bare base64. Raises BadBody."""
    if data[:5].lower() == "data:":
        return from_url(data, where)
    plain = plain_base64(data, where)
    return Media(mime=true_type(plain) or "application/pdf", data=plain)


def plain_base64(payload: str, where: str) -> str:
    """Base64 without white space, checked. Raises BadBody."""
    is_plain = payload.isascii() and not any(map(payload.__contains__, _WHITE))  # quick for megabytes too
    data = payload if is_plain else "".join(payload.split())
    if not data.isascii() or len(data) % 4 == 1:
        raise BadBody(f"{where}: not base64")
    return data


def to_url(media: Media) -> str:
    """A URL that carries or names it."""
    return media.url or f"data:{media.mime or 'application/octet-stream'};base64,{media.data}"


def decoded_text(data: str, where: str) -> str:
    """The text in base64. Raises BadBody."""
    try:
        return base64.b64decode(data).decode()
    except (binascii.Error, ValueError):
        raise BadBody(f"{where}: not UTF-8 text in base64") from None

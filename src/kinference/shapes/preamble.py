"""What comes before a streamed answer says anything: that it begins, that it lives, and frames around nothing yet. As
long as a destination has sent no more than that, another one can still be asked.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from kinference.shapes.scan import BadBody, decode
from kinference.shapes.skim import WRITTEN
from kinference.shapes.sse import Event
from kinference.vocabulary import Api

_FRAMES: Final[Mapping[Api, frozenset[str]]] = {
    Api.ANTHROPIC_MESSAGES: frozenset({"message_start", "ping", "content_block_start"}),
    Api.OPENAI_RESPONSES: frozenset(
        {
            *("response.created", "response.queued", "response.in_progress", "response.output_item.added"),
            *("response.content_part.added", "response.reasoning_summary_part.added"),
        }
    ),
    Api.BEDROCK_CONVERSE: frozenset({"messageStart", "contentBlockStart"}),
}
"""By their names, where events have some."""
_ECHOES: Final = frozenset({"message_start", "response.created", "response.queued", "response.in_progress"})
"""Those that repeat of the request what looks like an answer."""
_ENDS: Final = re.compile(rb'eason"\s*:\s*"(?!")')
"""A `finish_reason`, `finishReason` or `blockReason`."""
_ERROR: Final = b'"error"'
_BYTES_MAX: Final = 2048
"""A longer event without a name brings something, whatever it is."""


class _Typed(msgspec.Struct):
    type: str = ""


_TYPED: Final = msgspec.json.Decoder(_Typed)


def is_preamble(api: Api, event: Event) -> bool:
    """Whether an event of a stream of this shape says nothing of an answer. One that is not known says something."""
    data = event.data
    frames = _FRAMES.get(api)
    if frames is None:
        if len(data) > _BYTES_MAX or event.event == "error" or data[:1] == b"[" or data.find(_ERROR) >= 0:
            return False
        return _ENDS.search(data) is None and WRITTEN.search(data) is None
    name = event.event or _type(data)
    return name in frames and (name in _ECHOES or WRITTEN.search(data) is None)


def _type(data: bytes) -> str:
    try:
        return decode(_TYPED, data).type
    except BadBody:
        return ""

"""Pictures, sounds and files inside a conversation's bytes, each told by a digest instead of its base64.

Engines make of a picture as many tokens as its size asks for, which has little to do with how long its base64 is: a
photo's would pass for hundreds of thousands of tokens. Where only its bytes matter, a digest of them tells as much.
"""

import re
from typing import Final

from xxhash import xxh3_128_hexdigest

from kinference.shapes.scan import has

STAND_IN_BYTES: Final = 4_096
"""What one counts as: at four bytes a token, what models commonly make of a picture."""
_BRACKET: Final = b"["[0]
"""A number: to look for a byte by its number is ten times as fast as by bytes of one."""
_SHORT: Final = 256
"""So little base64 is left as it stands."""
# Inside a JSON string the quotes would be escaped, so this matches structure and never text. What follows the scheme of
# a data URL is base64 by its own word: to see it of each byte takes more than all the rest.
_PAYLOAD: Final = re.compile(
    rb'"(?:url|image_url|file_data|data)"\s{0,32}:\s{0,32}"(data:[\w.+/;=\\-]{0,128};base64,)?'
)
_BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_\\"
"""The backslash is there because some writers escape each slash."""


def digested(text: bytes) -> bytes:
    """The same JSON with a stand-in for each long payload, equal for equal ones; what a client says is left alone."""
    if _BRACKET not in text or not has(text, b'"data'):
        return text  # as most are: payloads stand in lists of parts, by that word all of them
    pieces: list[bytes] = []
    kept = 0
    found = _PAYLOAD.search(text)
    while found is not None:
        start = found.end()
        end = text.find(b'"', start)
        payload = text[start : max(start, end)]
        if len(payload) > _SHORT and (found[1] is not None or not payload.translate(None, _BASE64)):
            pieces += (text[kept:start], _stand_in(payload))
            kept = end
        found = _PAYLOAD.search(text, max(start, end))
    return b"".join((*pieces, text[kept:])) if pieces else text


def _stand_in(payload: bytes) -> bytes:
    digest = xxh3_128_hexdigest(payload).encode()
    return digest * (STAND_IN_BYTES // len(digest))

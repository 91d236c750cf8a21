"""The Huffman code of RFC 7541 a byte at a time: steps of the hpack library's table, joined in pairs and remembered."""

from hpack.exceptions import HPACKDecodingError
from hpack.huffman_table import HUFFMAN_COMPLETE, HUFFMAN_EMIT_SYMBOL, HUFFMAN_FAIL, HUFFMAN_TABLE

STEPS_MAX = 8192
"""Of 65,536 that there are; text uses a few hundred."""


class HuffmanDecoder:
    """Decodes strings, faster the more alike they are."""

    def __init__(self) -> None:
        self._steps: dict[int, tuple[int, bytes, int]] = {}
        """By state and byte: the next state, what is decoded, and whether the string may end there."""

    def decode(self, packed: bytes) -> bytes:
        """The text. Raises HPACKDecodingError for what is no code, or breaks off."""
        known, state, may_end, text = self._steps.get, 0, HUFFMAN_COMPLETE, []
        for byte in packed:
            key = state << 8 | byte
            state, piece, may_end = known(key) or self._step(key)
            text.append(piece)
        if not may_end:
            raise HPACKDecodingError("a Huffman code that breaks off")
        return b"".join(text)

    def _step(self, key: int) -> tuple[int, bytes, int]:
        """Two steps of the library's table, which takes four bits at a time."""
        state, flags, text = key >> 8, 0, b""
        for bits in (key >> 4 & 0xF, key & 0xF):
            state, flags, symbol = HUFFMAN_TABLE[state * 16 + bits]
            if flags & HUFFMAN_FAIL:
                raise HPACKDecodingError("what is no Huffman code")
            if flags & HUFFMAN_EMIT_SYMBOL:
                text += bytes((symbol,))
        if len(self._steps) >= STEPS_MAX:
            self._steps.clear()
        self._steps[key] = step = state, text, flags & HUFFMAN_COMPLETE
        return step

"""The Huffman code of RFC 7541 a byte at a time: steps of the hpack library's table, joined in pairs and remembered."""

from collections.abc import Callable
from typing import TypeAlias

from hpack.exceptions import HPACKDecodingError
from hpack.huffman_table import HUFFMAN_COMPLETE, HUFFMAN_EMIT_SYMBOL, HUFFMAN_FAIL, HUFFMAN_TABLE

STEPS_MAX = 8192
"""Of 65,536 that there are; text uses a few hundred."""


class _State(dict[int, "_Step"]):
    """One state of the code: what each byte comes to in it, found out when it is first asked for."""

    __slots__ = ("_number", "_step")

    def __init__(self, number: int, step: Callable[[int, int], "_Step"]) -> None:
        super().__init__()
        self._number, self._step = number, step

    def __missing__(self, byte: int) -> "_Step":
        step = self[byte] = self._step(self._number, byte)
        return step


_Step: TypeAlias = tuple[_State, bytes, int]
"""The next state, what is decoded, and whether the string may end there."""


class HuffmanDecoder:
    """Decodes strings, faster the more alike they are."""

    def __init__(self) -> None:
        self._states: dict[int, _State] = {}
        self._steps = 0

    def decode(self, packed: bytes) -> bytes:
        """The text. Raises HPACKDecodingError for what is no code, or breaks off."""
        step: _Step = self._state(0), b"", HUFFMAN_COMPLETE
        text: list[bytes] = []
        add = text.append
        for byte in packed:
            step = step[0][byte]
            add(step[1])
        if not step[2]:
            raise HPACKDecodingError("a Huffman code that breaks off")
        return b"".join(text)

    def _state(self, number: int) -> _State:
        state = self._states.get(number)
        if state is None:
            state = self._states[number] = _State(number, self._step)
        return state

    def _step(self, number: int, byte: int) -> _Step:
        """Two steps of the library's table, which takes four bits at a time."""
        flags, text = 0, b""
        for bits in (byte >> 4, byte & 0xF):
            number, flags, symbol = HUFFMAN_TABLE[number * 16 + bits]
            if flags & HUFFMAN_FAIL:
                raise HPACKDecodingError("what is no Huffman code")
            if flags & HUFFMAN_EMIT_SYMBOL:
                text += bytes((symbol,))
        if self._steps >= STEPS_MAX:
            for state in self._states.values():
                state.clear()
            self._steps = 0
        self._steps += 1
        return self._state(number), text, flags & HUFFMAN_COMPLETE

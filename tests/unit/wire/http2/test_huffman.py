"""Our Huffman decoder against the library's."""

from random import Random

import pytest
from hpack.exceptions import HPACKDecodingError
from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hpack.huffman_table import decode_huffman
from hypothesis import given
from hypothesis import strategies as st

from kinference.wire.http2.huffman import STEPS_MAX, HuffmanDecoder

STATES = 256
encode = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH).encode


@given(st.lists(st.binary(max_size=60), max_size=10))
def test_what_was_encoded_is_decoded(texts: list[bytes]) -> None:
    decoder = HuffmanDecoder()
    assert [decoder.decode(encode(text)) for text in texts] == texts


@given(st.binary(max_size=12))
def test_any_bytes_mean_what_they_mean_to_the_library(packed: bytes) -> None:
    try:
        expected = decode_huffman(packed)
    except HPACKDecodingError:
        with pytest.raises(HPACKDecodingError):
            HuffmanDecoder().decode(packed)
    else:
        assert HuffmanDecoder().decode(packed) == expected


def test_what_is_remembered_is_bounded() -> None:
    decoder = HuffmanDecoder()
    draw = Random(1)
    for _ in range(2_000):
        text = draw.randbytes(60)
        assert decoder.decode(encode(text)) == text
        assert sum(map(len, decoder._states.values())) <= STEPS_MAX
    assert len(decoder._states) <= STATES

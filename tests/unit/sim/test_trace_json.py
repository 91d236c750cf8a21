"""Mooncake's format, and what others write by its name."""

import pytest

from kinference.errors import ConfigError
from kinference.sim.cluster.job import Arrival
from kinference.sim.trace_json import NAME_MAX, json_arrivals

LINE = b'{"timestamp": 500, "input_length": 1100, "output_length": 7, "hash_ids": [4, 5, 6]}'


def read(*lines: bytes) -> list[Arrival]:
    numbered = iter(enumerate(lines, start=1))
    return list(json_arrivals("trace", next(numbered), numbered))


def test_a_line_is_a_request_with_its_full_blocks() -> None:
    (one,) = read(LINE)
    assert (one.at, one.prompt_tokens, one.output_tokens, one.blocks) == (0.5, 1_100, 7, (4, 5))


def test_fractions_of_a_millisecond_and_whole_numbers_written_as_fractions_are_read() -> None:
    (one,) = read(b'{"timestamp": 0.25, "input_length": 1100.0, "output_length": 7.0, "hash_ids": [4, 5, 6]}')
    assert (one.at, one.prompt_tokens, one.output_tokens) == (0.00025, 1_100, 7)


def test_other_names_and_further_fields_are_no_matter() -> None:
    (one,) = read(
        b'{"created_time": 500, "input_tokens": 1100, "output_tokens": 7, "hash_ids": [4, 5], "session_id": {}}'
    )
    assert one == read(LINE)[0]


def test_without_names_no_two_prompts_are_alike() -> None:
    first, second = read(*[b'{"timestamp": 0, "input_length": 1100, "output_length": 7}'] * 2)
    assert len({*first.blocks, *second.blocks}) == 4
    assert min(first.blocks + second.blocks) >= NAME_MAX


def test_names_may_be_words() -> None:
    one, other, third = (
        read(b'{"timestamp": 0, "input_length": 1100, "output_length": 7, "hash_ids": ["%s", "%s"]}' % pair)[0].blocks
        for pair in ((b"a1", b"b2"), (b"a1", b"c3"), (b"a1", b"b2"))
    )
    assert one == third
    assert (one[0] == other[0], one[1] == other[1]) == (True, False)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{nonsense", "is no line of a trace"),
        (b'{"timestamp": 1e999, "input_length": 1, "output_length": 7}', "is no line of a trace"),
        (b'{"extra": ' + b"[" * 100_000 + b"}", "is no line of a trace"),
        (b'{"input_length": 1, "output_length": 7}', "has no timestamp"),
        (b'{"timestamp": -1e300, "input_length": 1, "output_length": 7}', "times go up to"),
        (b'{"timestamp": 1.1e15, "input_length": 1, "output_length": 7}', "times go up to"),
        (b'{"timestamp": 1, "output_length": 7}', "has no input_length"),
        (b'{"timestamp": 1, "input_length": 0, "output_length": 7}', "lengths go from 1"),
        (b'{"timestamp": 1, "input_length": 1.5, "output_length": 7}', "lengths go from 1"),
        (b'{"timestamp": 1, "input_length": 3000000, "output_length": 7}', "lengths go from 1"),
        (b'{"timestamp": 1, "input_length": 1e300, "output_length": 7}', "lengths go from 1"),
        (b'{"timestamp": 1, "input_length": 1, "output_length": -1}', "lengths go from 1"),
        (b'{"timestamp": 1, "input_length": 600, "output_length": 7, "hash_ids": [-1]}', "hash_ids go from 0"),
        (b'{"timestamp": 1, "input_length": 1100, "output_length": 7, "hash_ids": [1, 1]}', "no name comes twice"),
    ],
)
def test_what_is_no_line_is_said_with_its_place(line: bytes, complaint: str) -> None:
    with pytest.raises(ConfigError, match=f"trace:2: {complaint}|trace:2: .*{complaint}"):
        read(LINE, line)

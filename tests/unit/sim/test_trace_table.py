"""Tables of token counts, as Azure and BurstGPT publish them."""

import pytest

from kinference.errors import ConfigError
from kinference.sim.cluster.job import Arrival
from kinference.sim.trace_table import table_arrivals

AZURE = b"TIMESTAMP,ContextTokens,GeneratedTokens"
BURST = b"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"


def read(*lines: bytes) -> list[Arrival]:
    numbered = iter(enumerate(lines, start=1))
    return list(table_arrivals("trace", next(numbered), numbered))


def shapes(*lines: bytes) -> list[tuple[float, int, int]]:
    return [(round(one.at, 6), one.prompt_tokens, one.output_tokens) for one in read(*lines)]


def test_azures_times_count_from_the_first_row_to_the_microsecond() -> None:
    rows = (b"2023-11-16 18:17:03.9799600,4808,10", b"2023-11-16 18:17:04.0319600,3180,8", b"2023-11-16 18:17:05,1,1")
    assert shapes(AZURE, *rows) == [(0.0, 4_808, 10), (0.052, 3_180, 8), (1.02004, 1, 1)]


def test_times_with_a_zone_are_read_too() -> None:
    rows = (
        b"2024-05-10 00:00:00.009930+00:00,5,6",
        b"2024-05-10 02:00:01.009930+02:00,7,8",
        b"2024-05-10 00:00:02.00993,9,9",
    )
    assert shapes(AZURE, *rows) == [(0.0, 5, 6), (1.0, 7, 8), (2.0, 9, 9)]


def test_burstgpts_times_are_seconds_and_its_failures_are_passed_over() -> None:
    rows = (b"5,ChatGPT,472,18,490,Conversation log", b"45,GPT-4,20,0,20,API log", b"118.5,GPT-4,1087,230,1317,API log")
    assert shapes(BURST, *rows) == [(0.0, 472, 18), (113.5, 1_087, 230)]


def test_columns_are_found_by_their_names_in_any_order_and_spelling() -> None:
    assert shapes(b' generatedtokens , "Extra, column",CONTEXTTOKENS,timestamp', b'7,"a, b",1100.0,3') == [
        (0.0, 1_100, 7)
    ]


def test_no_two_prompts_are_alike_for_nothing_tells_that_they_are() -> None:
    first, second = read(AZURE, b"0,1100,7", b"1,1100,7")
    assert len({*first.blocks, *second.blocks}) == 4


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (b"0,1", "has fewer columns"),
        (b"0,-1,1", "lengths go from 0"),
        (b"0,1,3000000", "lengths go from 0"),
        (b"0,1," + b"9" * 10_000, "lengths go from 0"),
        ("0,1,\u0663".encode(), "lengths go from 0"),
        (b"0,,1", "lengths go from 0"),
        (b"soon,1,1", "has no time"),
        (b"nan,1,1", "has no time"),
        (b"inf,1,1", "has no time"),
        (b"-1e308,1,1", "has no time"),
        (b"1.1e12,1,1", "has no time"),
        (b"\xff,1,1", "is not UTF-8"),
        (b'"0,1,1', "is no row of a table"),
        (b'0,1,1,"' + b"x" * 200_000 + b'"', "is no row of a table"),
    ],
)
def test_what_is_no_row_is_said_with_its_place(row: bytes, complaint: str) -> None:
    with pytest.raises(ConfigError, match=f"trace:2: {complaint}"):
        read(AZURE, row)


@pytest.mark.parametrize("heading", [b"nonsense", b"a,b,c", b"TIMESTAMP,ContextTokens", b"[1]"])
def test_a_heading_that_is_not_known_is_told_which_are(heading: bytes) -> None:
    with pytest.raises(ConfigError, match=r"neither a JSON object nor a heading with TIMESTAMP, .* \(BurstGPT\)"):
        read(heading)

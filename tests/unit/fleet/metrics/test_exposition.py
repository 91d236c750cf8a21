import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinference.fleet.metrics.exposition import SAMPLES_MAX, Exposition


def values(page: bytes, name: bytes = b"m") -> list[float]:
    return [sample.value for sample in Exposition(page).samples(name)]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (b"m 1", [1.0]),
        (b"m 1\n", [1.0]),
        (b"m 1.5e+09\r\n", [1.5e9]),
        (b"# HELP m words\n# TYPE m gauge\nm 2\n", [2.0]),
        (b'm{a="1",b="2"} 3\nm{a="x"} 4 1700000000000\nother 5\n', [3.0, 4.0]),
        (b'm{a="} 9\\" \\\\"}\t7\n', [7.0]),
        (b"m{} 1\n", [1.0]),
        (b"", []),
        (b"m", []),
        (b"mm 1\n", []),
        (b"m_total 1\nm 2\n", [2.0]),
        (b"# m 1\n", []),
        (b"m NaN\nm +Inf\nm 3\n", [3.0]),
        (b"m one\nm 2\n", [2.0]),
        (b'm{a="unclosed 1\nm 2\n', [2.0]),
        (b"m " + b"1" * 400 + b"\n", []),
    ],
)
def test_a_metric_is_found_by_its_whole_name(page: bytes, expected: list[float]) -> None:
    assert values(page) == expected


def test_labels_are_told_by_name() -> None:
    (sample,) = Exposition(b'm{a="1",bb="two, \\"quoted\\"",c=""} 1\n').samples(b"m")
    assert [sample.label(name) for name in (b"a", b"bb", b"c", b"b")] == [b"1", b'two, \\"quoted\\"', b"", None]


def test_a_flood_of_samples_is_cut() -> None:
    assert len(values(b"m 1\n" * 100_000)) == SAMPLES_MAX
    for beyond in (0, 1):
        page = Exposition(b"m 1\n" * (SAMPLES_MAX + beyond) + b"n 1\n")
        page.count(b"m")
        assert page.is_cut == bool(beyond)


def test_a_flood_of_longer_names_ends_the_search() -> None:
    assert values(b"mm 1\n" * 100_000 + b"m 1\n") == []


@pytest.mark.parametrize("filler", [b"{", b'"', b"\\", b'{a="', b"{{", b'{"a', b" "])
def test_a_hostile_line_costs_no_more_than_its_length(filler: bytes) -> None:
    assert values(b"m" + filler * 200_000) == []


@given(st.binary(), st.sampled_from([b"m", b"n"]))
def test_no_page_breaks_the_reader(page: bytes, name: bytes) -> None:
    assert all(isinstance(value, float) for value in values(name + page, name))


@given(
    st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.text(st.characters(codec="utf-8")), max_size=4),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_what_prometheus_would_write_is_read_back(labels: dict[str, str], value: float) -> None:
    escaped = {k: v.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for k, v in labels.items()}
    line = "m{" + ",".join(f'{k}="{v}"' for k, v in escaped.items()) + f"}} {value}\n"
    (sample,) = Exposition(line.encode()).samples(b"m")
    assert sample.value == value
    assert {k: sample.label(k.encode()) for k in labels} == {k: v.encode() for k, v in escaped.items()}


def test_the_samples_of_all_ranks_are_one_number() -> None:
    page = Exposition(b'm{rank="0"} 3\nm{rank="1"} 5\nn 0.25\nn 0.75\n')
    assert (page.first(b"m"), page.count(b"m"), page.first_count(b"m"), page.ratio(b"n")) == (3.0, 8, 3, 0.5)
    assert (page.count(b"m", b"rank", b"1"), page.count(b"m", b"rank", b"2")) == (5, None)
    assert (page.first(b"x"), page.count(b"x"), page.first_count(b"x"), page.ratio(b"x")) == (None, None, None, None)


def test_numbers_out_of_range_are_held_within_it() -> None:
    page = Exposition(b"m -3\nn 1e300\n")
    assert (page.count(b"m"), page.first_count(b"m"), page.ratio(b"m")) == (0, None, 0.0)
    assert (page.count(b"n"), page.ratio(b"n")) == (1 << 40, 1.0)

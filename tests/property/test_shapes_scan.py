"""Scans of JSON text agree with what Python's own reader makes of it, whatever its strings hold."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from kinference.shapes.scan import (
    DEPTH_MAX,
    _is_deep_by_bracket,
    _is_deep_by_value,
    _is_indented_deep,
    mend_surrogates,
)

TEXT = st.text('[]{}"\\/bnu,:\né🙂', max_size=8)
SIBLING = st.recursive(
    st.none() | TEXT, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
LEVELS = st.integers(DEPTH_MAX - 3, DEPTH_MAX + 2)


def depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


@given(st.lists(SIBLING, min_size=1, max_size=5), TEXT, LEVELS, st.booleans())
def test_depth_is_found_whatever_the_strings_hold(
    siblings: list[object], key: str, levels: int, ascii_only: bool
) -> None:
    value: object = siblings[0]
    for level in range(levels):
        sibling = siblings[level % len(siblings)]
        value = {key: value, "x" + key: sibling} if level % 2 else [sibling, value]
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    is_deep = depth(value) > DEPTH_MAX
    assert _is_deep_by_value(text) is is_deep
    assert _is_deep_by_bracket(text) is is_deep
    assert _is_indented_deep(text) >= is_deep
    assert not _is_indented_deep(text) or depth(value) >= DEPTH_MAX


@given(st.lists(st.sampled_from([r"\ud83d", r"\uDE00", r"\\", r"\"", r"\n", "ud83d", "ude00", r"\u00e9"]), max_size=12))
def test_lone_surrogates_are_those_that_python_reads_as_such(pieces: list[str]) -> None:
    text = '"' + "".join(pieces) + '"'
    mended = mend_surrogates(text.encode())
    assert len(mended) == len(text)
    assert json.loads(mended) == re.sub("[\ud800-\udfff]", "\ufffd", json.loads(text))

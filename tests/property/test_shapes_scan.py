"""Both ways to look for depth agree with the depth that a value has, whatever its strings hold."""

import json

from hypothesis import given
from hypothesis import strategies as st

from kinference.shapes.scan import DEPTH_MAX, _is_deep_by_bracket, _is_deep_by_value

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

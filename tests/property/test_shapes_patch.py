"""A patch changes one value and no other byte, whatever JSON surrounds it."""

import json
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from kinference.shapes.detect import parse
from kinference.shapes.patch import replace_model, set_include_usage

Pairs: TypeAlias = list[tuple[str, object]]

TRICKY = st.sampled_from(
    [
        "model",
        '"model"',
        '"model":"x"',
        "\\",
        '\\"model\\"',
        "},{",
        "]}",
        "stream_options",
        "\ud83d",
        "🙂",
        "\u2028",
        "",
    ]
)
TEXT = TRICKY | st.text()
NUMBER = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUE = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
SPACE = st.sampled_from(["", " ", "\n", "\r\n\t ", "  "])
MEMBERS = st.lists(st.tuples(TEXT, VALUE), max_size=6)


@st.composite
def json_of(draw: st.DrawFn, value: object) -> str:
    """Any spelling of a value that `json` can write."""
    indent = draw(st.sampled_from([None, 0, 2]))
    return json.dumps(value, indent=indent, ensure_ascii=draw(st.booleans()) or not is_utf8(value))


def is_utf8(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@st.composite
def spelled_key(draw: st.DrawFn, key: str) -> str:
    """A key with some of its letters escaped."""
    escaped = (f"\\u{ord(letter):04x}" if draw(st.booleans()) else letter for letter in key)
    return '"' + "".join(escaped) + '"'


@st.composite
def object_around(
    draw: st.DrawFn, key: str, values: st.SearchStrategy[object], least: int
) -> tuple[bytes, list[bytes]]:
    """An object that holds `key` one to three times among others: its bytes, and these with the values cut out."""
    others = [pair for pair in draw(MEMBERS) if pair[0] != key]
    marked = [(key, draw(values)) for _ in range(draw(st.integers(least, 3)))]
    members = draw(st.permutations([*others, *marked]))
    pieces = [draw(SPACE) + "{"]
    for position, (name, value) in enumerate(members):
        written = draw(spelled_key(name)) if name == key else json.dumps(name)
        before = ("," if position else "") + draw(SPACE) + written + draw(SPACE) + ":" + draw(SPACE)
        pieces[-1] += before
        text = draw(json_of(value))
        if name == key:
            pieces += (text, draw(SPACE))
        else:
            pieces[-1] += text + draw(SPACE)
    pieces[-1] += "}" + draw(SPACE)
    return "".join(pieces).encode(), [piece.encode() for piece in pieces[::2]]


@given(object_around("model", VALUE, 1), st.text(st.characters(exclude_categories=["Cs"])))
def test_every_top_level_model_changes_and_no_other_byte(case: tuple[bytes, list[bytes]], model: str) -> None:
    body, around = case
    patched = replace_model(body, model)
    position = 0
    for before in around[:-1]:
        assert patched.startswith(before, position)
        value, length = json.JSONDecoder().raw_decode(patched[position + len(before) :].decode())
        assert value == model
        position += len(before) + len(patched[position + len(before) :].decode()[:length].encode())
    assert patched[position:] == around[-1]


def pairs(body: bytes) -> Pairs:
    found = json.loads(body, object_pairs_hook=list)
    assert isinstance(found, list)
    return found


@given(object_around("stream_options", st.none() | st.dictionaries(TEXT, VALUE, max_size=3), 0))
def test_usage_is_asked_for_and_every_other_member_kept(case: tuple[bytes, list[bytes]]) -> None:
    body, _ = case
    patched = set_include_usage(body)
    before, after = (pairs(text) for text in (body, patched))
    assert [pair for pair in after if pair[0] != "stream_options"] == [
        pair for pair in before if pair[0] != "stream_options"
    ]
    options = json.loads(patched)["stream_options"]
    assert options["include_usage"] is True
    old = json.loads(body).get("stream_options") or {}
    assert options == {**old, "include_usage": True}
    assert set_include_usage(patched) == patched


@given(MEMBERS, st.data())
def test_detection_and_patching_agree_on_the_model(members: Pairs, data: st.DataObject) -> None:
    others = {name: value for name, value in members if name.startswith(("x", "\\", '"'))}
    text = data.draw(json_of({**others, "model": "before", "messages": [{"content": others}]}))
    assert parse(replace_model(text.encode(), "after"), "/v1/chat/completions").model == "after"

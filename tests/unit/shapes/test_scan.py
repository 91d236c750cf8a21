"""JSON as bytes: soundness, depth and members."""

import json
import tracemalloc
from contextlib import suppress

import msgspec
import pytest

from kinference.shapes.scan import (
    DEPTH_MAX,
    MEMBERS_MAX,
    BadBody,
    Member,
    check_depth,
    check_utf8,
    decode,
    has,
    members,
    mend_surrogates,
)

ANY = msgspec.json.Decoder(msgspec.Raw)


def test_a_mark_is_found_wherever_it_stands() -> None:
    assert all(has(text, b"mark") for text in (b"mark", b"xx mark", b"mark xx", b"mmark", b"markk"))
    assert not any(has(text, b"mark") for text in (b"", b"mar", b"Mark", b"mar k"))


def nested(depth: int, filler: str = "") -> bytes:
    return ("[" * depth + filler + "]" * depth).encode()


def test_a_message_stays_short() -> None:
    assert len(str(BadBody("x" * 1000))) == 200


@pytest.mark.parametrize("text", [b"", b" \n"])
def test_an_empty_body_is_told_as_such(text: bytes) -> None:
    with pytest.raises(BadBody, match="it is empty; send the request as JSON"):
        decode(ANY, text)


@pytest.mark.parametrize("text", [b"", b"{", b'{"a":NaN}', b'{"a":1,}', b"\xef\xbb\xbf{}", b'{"a":1} x', b'{"a":"\n"}'])
def test_what_is_not_json_is_refused(text: bytes) -> None:
    with pytest.raises(BadBody, match="not JSON"):
        decode(ANY, text)


def test_a_wrong_type_is_named_without_the_value() -> None:
    with pytest.raises(BadBody, match=r"Expected `bool`, got `str`") as caught:
        decode(msgspec.json.Decoder(bool), b'"secret"')
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("depth", [1_000, 10_000, 1_000_000])
def test_no_depth_overflows_the_stack(depth: int) -> None:
    with pytest.raises(BadBody, match="nests deeper"):
        decode(ANY, nested(depth))


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        (rb'"\ud83d"', rb'"\ufffd"'),
        (rb'"\uDE00"', rb'"\ufffd"'),
        (rb'"\ud83d\ude00"', rb'"\ud83d\ude00"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\ude00\ud83d"', rb'"\ufffd\ufffd"'),
        (rb'"\\ud83d"', rb'"\\ud83d"'),
        (rb'"\\\ud83d"', rb'"\\\ufffd"'),
        (rb'"\ud7ff\ue000"', rb'"\ud7ff\ue000"'),
        (rb'"\\ud83d\ude00"', rb'"\\ud83d\ufffd"'),
        (rb'"\ud83d\\ude00"', rb'"\ufffd\\ude00"'),
        (rb'"\ud83d\ude00\ude00"', rb'"\ud83d\ude00\ufffd"'),
    ],
)
def test_only_lone_surrogate_escapes_are_mended(text: bytes, mended: bytes) -> None:
    assert mend_surrogates(text) == mended


def test_a_lone_surrogate_is_taken_as_engines_take_it() -> None:
    assert decode(msgspec.json.Decoder(str), rb'"a\ud83d"') == "a\ufffd"


def test_utf8_is_checked_in_every_byte() -> None:
    check_utf8('{"ключ":"🙂"}'.encode())
    for text in (b'"\xff"', b'"\xc3"', b'"\xed\xa0\xbd"', b'"\xc0\x80"'):
        with pytest.raises(BadBody, match="invalid byte at 1"):
            check_utf8(text)


@pytest.mark.parametrize("kinds", ["[]", "{}"])
def test_the_depth_limit_is_exact(kinds: str) -> None:
    opening = kinds[0] if kinds == "[]" else '{"a":'
    for depth in (DEPTH_MAX, DEPTH_MAX + 1):
        text = opening * depth + "1" + kinds[1] * depth
        if depth <= DEPTH_MAX:
            check_depth(text.encode())
        else:
            with pytest.raises(BadBody, match="nests deeper than 128"):
                check_depth(text.encode())


@pytest.mark.parametrize(
    "content",
    ["[" * 500, "]" * 500, '{"' * 500, '\\"[' * 500, "\\" * 501 + "[" * 500, '"' * 301 + "{" * 200, "\n\t[" * 300],
)
def test_brackets_in_a_string_do_not_nest(content: str) -> None:
    check_depth(json.dumps({"a": [content, {"b": content}]}).encode())


@pytest.mark.parametrize("content", ["]" * 500, '\\"]', "\\", '"', "\n", 'a"}]', "a\\\\"])
def test_brackets_in_a_string_hide_no_depth(content: str) -> None:
    inner: object = content
    for _ in range(DEPTH_MAX + 1):
        inner = [content, inner]
    with pytest.raises(BadBody, match="nests deeper"):
        check_depth(json.dumps(inner).encode())


@pytest.mark.parametrize("length", [1 << 17, 1 << 20])
def test_a_large_body_is_held_to_the_same_depth(length: int) -> None:
    padding = b'"' + b"x" * length + b'",'
    check_depth(b"[" + padding + nested(DEPTH_MAX - 1) + b"]")
    with pytest.raises(BadBody, match="nests deeper"):
        check_depth(b"[" + padding + nested(DEPTH_MAX) + b"]")


def test_a_body_to_be_mended_is_held_to_the_same_depth() -> None:
    lone = rb'"\ud83d",'
    check_depth(b"[" + lone + nested(DEPTH_MAX - 1) + b"]")
    with pytest.raises(BadBody, match="nests deeper"):
        check_depth(b"[" + lone + nested(DEPTH_MAX) + b"]")


def test_many_siblings_are_not_deep() -> None:
    check_depth(json.dumps([{"a": [i]} for i in range(1000)]).encode())


def spans(text: bytes) -> list[tuple[str, bytes]]:
    return [(member.key, text[member.start : member.end]) for member in members(text)]


def test_members_are_found_in_order_whatever_the_spacing() -> None:
    text = b' \n{ "a" :\t1 ,"b":[ {"a":2} ] , "\\u0063" : "x\\"," ,"":{}}\r\n'
    assert spans(text) == [("a", b"1"), ("b", b'[ {"a":2} ]'), ("c", b'"x\\","'), ("", b"{}")]


def test_duplicate_members_are_each_found() -> None:
    text = b'{"a":12,"b":"}","a":[1,"]"],"a":1e400,"a":1 }'
    assert spans(text) == [("a", b"12"), ("b", b'"}"'), ("a", b'[1,"]"]'), ("a", b"1e400"), ("a", b"1")]


def test_a_duplicate_before_other_text_keeps_its_offsets() -> None:
    text = '{"a":"ключ","a":["🙂", 99999999999999999999999],"a":1}'.encode()
    assert [value.decode() for _, value in spans(text)] == ['"ключ"', '["🙂", 99999999999999999999999]', "1"]


def test_members_with_lone_surrogates_are_found() -> None:
    text = rb'{"\ud83d":"\ud83d","a":1}'
    assert spans(text) == [("\ufffd", rb'"\ud83d"'), ("a", b"1")]


def test_members_are_walked_up_to_their_limit() -> None:
    text = b"{" + b'"a":1,' * (MEMBERS_MAX - 1) + b'"a":[22]}'
    assert len(list(members(text))) == MEMBERS_MAX


@pytest.mark.parametrize("member", [b'"a":1,', b'"a":[],"a":{},', b'"a":"\\n","\\u0061":1,'])
def test_countless_members_are_refused_and_not_walked(member: bytes) -> None:
    with pytest.raises(BadBody, match="more than 4096 members"):
        list(members(b"{" + member * 50_000 + b'"a":[22]}'))


def test_a_duplicate_is_passed_over_without_building_its_values() -> None:
    text = b'{"a":[' + b"12," * 300_000 + b'1],"a":1}'
    tracemalloc.start()
    try:
        assert len(list(members(text))) == 2
        assert tracemalloc.get_traced_memory()[1] < 2 * len(text)
    finally:
        tracemalloc.stop()


def test_a_deep_duplicate_overflows_no_stack() -> None:
    for depth in range(100, 1_000, 100):
        text = b'{"a":' + nested(depth) + b',"a":1}'
        with suppress(BadBody):
            assert len(list(members(text))) == 2


def test_an_empty_object_has_no_members() -> None:
    assert list(members(b" { } ")) == []


@pytest.mark.parametrize("text", [b"[]", b'"a"', b"1", b'{"a"}', b""])
def test_what_is_no_object_has_no_members_to_walk(text: bytes) -> None:
    with pytest.raises(BadBody):
        list(members(text))


def test_a_member_is_a_span() -> None:
    assert list(members(b'{"a":1}')) == [Member("a", 5, 6)]

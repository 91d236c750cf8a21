"""Splicing a value into a body."""

import json
from typing import Any

import pytest

from kinference.shapes.patch import replace_model, set_include_usage, set_member, without_member
from kinference.shapes.scan import BadBody


@pytest.mark.parametrize(
    ("body", "patched"),
    [
        (b'{"model":"a"}', b'{"model":"new"}'),
        (b'\n{ "model"\t:\r\n "a" , "x" : 1.0e+01 }\n', b'\n{ "model"\t:\r\n "new" , "x" : 1.0e+01 }\n'),
        (b'{"messages":[{"model":"b"}],"model":"a"}', b'{"messages":[{"model":"b"}],"model":"new"}'),
        (b'{"x":"\\"model\\":\\"b\\"","model":"a"}', b'{"x":"\\"model\\":\\"b\\"","model":"new"}'),
        (b'{"x":"model","model":"model"}', b'{"x":"model","model":"new"}'),
        (b'{"\\u006do\\u0064el":"a"}', b'{"\\u006do\\u0064el":"new"}'),
        (b'{"model":"a","x":1,"model":"b"}', b'{"model":"new","x":1,"model":"new"}'),
        (b'{"model":"a","x":1,"\\u006dodel":"ab"}', b'{"model":"new","x":1,"\\u006dodel":"new"}'),
        (b'{"model":{"model":1},"model":"b"}', b'{"model":"new","model":"new"}'),
        (b'{"Model":"x","model":"a\\"}"}', b'{"Model":"x","model":"new"}'),
        (rb'{"x":"\ud83d","model":"a"}', rb'{"x":"\ud83d","model":"new"}'),
        (b'{"x":18446744073709551617,"y":1e400,"model":"a"}', b'{"x":18446744073709551617,"y":1e400,"model":"new"}'),
    ],
)
def test_only_the_top_level_model_changes(body: bytes, patched: bytes) -> None:
    assert replace_model(body, "new") == patched


@pytest.mark.parametrize("model", ['q"uote', "back\\slash", "ключ/🙂", "new\nline", "\x00", "a" * 2000])
def test_any_name_is_escaped(model: str) -> None:
    assert json.loads(replace_model(b'{"model":"a","x":1}', model)) == {"model": model, "x": 1}


def test_a_body_that_names_the_model_already_is_kept() -> None:
    body = b'{"model":"a"}'
    assert replace_model(body, "a") is body


@pytest.mark.parametrize("body", [b"{}", b'{"x":{"model":"a"}}', b"[]", b"", b'{"model":'])
def test_a_body_without_a_model_is_refused(body: bytes) -> None:
    with pytest.raises(BadBody):
        replace_model(body, "a")


@pytest.mark.parametrize(
    ("body", "patched"),
    [
        (b"{}", b'{"stream_options":{"include_usage":true}}'),
        (b' { "a" : 1 } ', b' {"stream_options":{"include_usage":true}, "a" : 1 } '),
        (b'{"stream_options":null}', b'{"stream_options":{"include_usage":true}}'),
        (b'{"stream_options" : { } , "a":1}', b'{"stream_options" : {"include_usage":true } , "a":1}'),
        (b'{"stream_options":{"x":1}}', b'{"stream_options":{"include_usage":true,"x":1}}'),
        (b'{"stream_options":{"include_usage" : false }}', b'{"stream_options":{"include_usage" : true }}'),
        (b'{"stream_options":{"include_usage":null}}', b'{"stream_options":{"include_usage":true}}'),
        (
            b'{"stream_options":null,"stream_options":{}}',
            b'{"stream_options":{"include_usage":true},"stream_options":{"include_usage":true}}',
        ),
        (b'{"a":{"stream_options":{}}}', b'{"stream_options":{"include_usage":true},"a":{"stream_options":{}}}'),
        (b'{"stream_options":5}', b'{"stream_options":5}'),
    ],
)
def test_usage_is_asked_for_and_every_other_byte_kept(body: bytes, patched: bytes) -> None:
    assert set_include_usage(body) == patched


def test_a_body_that_asks_for_usage_already_is_kept() -> None:
    body = b'{"stream_options": {"include_usage" : true} }'
    assert set_include_usage(body) is body


def test_usage_cannot_be_asked_in_what_is_no_object() -> None:
    with pytest.raises(BadBody):
        set_include_usage(b"[]")


@pytest.mark.parametrize(
    ("body", "given"),
    [
        (b"{ }", b'{"cache_salt":"s" }'),
        (b'{ "a":1.0e1}', b'{"cache_salt":"s", "a":1.0e1}'),
        (
            b'{"cache_salt" : null, "a":"cache_salt","cache_salt":"x"}',
            b'{"cache_salt" : "s", "a":"cache_salt","cache_salt":"s"}',
        ),
    ],
)
def test_a_member_is_given_whatever_there_was(body: bytes, given: bytes) -> None:
    assert set_member(body, "cache_salt", "s") == given


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (b'{"a":1, "x" : [1,{"x":2}] , "b":2}', b'{"a":1, "b":2}'),
        (b'{"a":"x","x":1}', b'{"a":"x"}'),
        (b'{ "a":1 , "x":null }', b'{ "a":1  }'),
        (b'{"x":1}', b"{}"),
        (b'{"x":1,"a":2,"x":3}', b'{"a":2}'),
    ],
)
def test_a_member_is_left_out_with_its_comma(body: bytes, left: bytes) -> None:
    assert without_member(body, "x") == left
    assert without_member(left, "x") is left


@pytest.mark.parametrize(
    ("body", "shorter"),
    [
        (b'{"k":1,"k":2}', b"{}"),
        (b'{"k":1 , "a":2,"k":3 , "k":4 }', b'{"a":2  }'),
        (b'{ "k":1,"a":2,"\\u006b":3, "b":4}', b'{ "a":2,"b":4}'),
    ],
)
def test_a_member_that_comes_again_goes_each_time(body: bytes, shorter: bytes) -> None:
    assert without_member(body, "k") == shorter


class Copied(bytes):
    """Bytes that count how many of them are copied, also of what is made of them."""

    copied = 0

    def __getitem__(self, part: Any) -> Any:
        found = super().__getitem__(part)
        if isinstance(found, int):
            return found
        Copied.copied += len(found)
        return Copied(found)

    def __add__(self, other: Any) -> "Copied":
        return Copied(super().__add__(other))


@pytest.mark.parametrize("rest", [b'"rest":"%b"' % (b"r" * 10_000)])
def test_a_body_is_copied_once_however_often_a_member_comes_again(rest: bytes) -> None:
    again = b",".join([b'"k":[]'] * 1000)
    for members in ((rest, again), (again, rest)):
        Copied.copied = 0
        body = Copied(b"{%b}" % b",".join(members))
        assert without_member(body, "k") == b"{%b}" % rest
        assert Copied.copied < 10 * len(body)

"""Members of a body, present, given or neither."""

import msgspec
import pytest

from kinference.shapes.fields import ABSENT, Body, given, present, string, struct


class Inner(msgspec.Struct):
    name: str = "unnamed"


@pytest.mark.parametrize("text", [b"null", b"false", b"0", b'""', b"[]", b"{}"])
def test_what_asks_for_nothing_is_not_given(text: bytes) -> None:
    assert not given(msgspec.Raw(text))


@pytest.mark.parametrize("text", [b"true", b"1", b'"x"', b"[1]", b'{"a":1}', b"0.5"])
def test_what_asks_for_something_is_given(text: bytes) -> None:
    assert given(msgspec.Raw(text))


def test_only_null_and_the_missing_are_not_present() -> None:
    assert not present(ABSENT)
    assert not present(msgspec.Raw(b"null"))
    assert present(msgspec.Raw(b"[]"))


@pytest.mark.parametrize(("text", "value"), [(b'"a\\u0062"', "ab"), (b"5", ""), (b"null", ""), (b'["a"]', "")])
def test_only_a_string_has_text(text: bytes, value: str) -> None:
    assert string(msgspec.Raw(text)) == value


def test_an_object_of_other_types_has_the_defaults() -> None:
    assert struct(Inner, msgspec.Raw(b'{"name":"x"}')).name == "x"
    for text in (b'{"name":5}', b"[]", b'"x"'):
        assert struct(Inner, msgspec.Raw(text)).name == "unnamed"
    assert struct(Inner, ABSENT).name == "unnamed"


def test_a_body_leaves_its_values_as_they_are_spelled() -> None:
    body = msgspec.json.decode(b'{"model":"m","messages": [ 1.0e+01 ] }', type=Body)
    assert (body.model, bytes(body.messages)) == ("m", b"[ 1.0e+01 ]")
    assert body.prompt is ABSENT

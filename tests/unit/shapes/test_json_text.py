from collections.abc import Callable
from decimal import Decimal

import pytest

from kinference.shapes import json_text
from kinference.shapes.scan import BadBody


def test_numbers_keep_their_digits() -> None:
    text = b'{"a":18446744073709551617,"b":1.10,"c":-0.0}'
    assert json_text.dumps(json_text.loads(text)) == text


def test_e13_a_lone_surrogate_is_mended() -> None:
    text = b'{"a":"\\ud83d","b":"\\ud83d\\ude00"}'
    assert json_text.loads(text) == {"a": "\ufffd", "b": "\U0001f600"}
    assert json_text.loads_mended(text) == (json_text.loads(text), True)
    assert json_text.loads_mended(b'{"b":"\\ud83d\\ude00"}')[1] is False


@pytest.mark.parametrize(
    ("text", "value"), [("", {}), (" ", {}), ('{"a":1}', {"a": 1}), ("[]", None), ("5", None), ('{"a', None)]
)
def test_an_object_or_none(text: str, value: object) -> None:
    assert json_text.as_object(text) == value
    assert (json_text.object_text(text) is None) == (value is None)


def test_an_object_inside_other_json_is_the_same_text() -> None:
    assert json_text.object_text('{ "a" : 1.0 }') == b'{ "a" : 1.0 }'
    assert json_text.object_text('{"a":"\\ud83d"}') == b'{"a":"\\ufffd"}'
    assert json_text.object_text("") == b"{}"


HUGE = "1e9999999999999999999"


def test_a_number_that_no_decimal_holds_is_the_clients_mistake() -> None:
    with pytest.raises(BadBody, match="out of range"):
        json_text.loads(b'{"a":%b}' % HUGE.encode())
    with pytest.raises(BadBody, match="out of range"):
        json_text.loads_mended(b'{"a":%b}' % HUGE.encode())
    assert json_text.object_text(f'{{"a":{HUGE}}}') == b'{"a":%b}' % HUGE.encode()
    assert not json_text.is_complete(HUGE)


def test_an_object_too_deep_is_none() -> None:
    assert json_text.object_text('{"a":' * 5000 + "1" + "}" * 5000) is None


def test_whole_values() -> None:
    assert [json_text.is_complete(text) for text in ('{"a":1}', "5", '{"a":', "")] == [True, True, False, False]


@pytest.mark.parametrize(
    ("read", "good", "bad"),
    [
        (json_text.object_of, {}, []),
        (json_text.list_of, [], {}),
        (json_text.string_of, "x", 1),
        (json_text.count_of, Decimal("7.0"), Decimal("7.5")),
        (json_text.count_of, 7, True),
        (json_text.count_of, None, -1),
        (json_text.number_of, Decimal("0.5"), "0.5"),
        (json_text.bool_of, False, 0),
        (json_text.strings_of, ["a"], [1]),
    ],
)
def test_narrowing_names_the_place(read: Callable[[object, str], object], good: object, bad: object) -> None:
    read(good, "here")
    with pytest.raises(BadBody, match="here"):
        read(bad, "here")


def test_one_string_is_a_list_of_one() -> None:
    assert json_text.strings_of("a", "stop") == ("a",)

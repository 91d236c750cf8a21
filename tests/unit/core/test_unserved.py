from msgspec.structs import replace

from kinference.core.request import Request
from kinference.core.unserved import Unserved
from kinference.ids import Address
from kinference.vocabulary import Api, Need

ONE = Request("m", Api.OPENAI_CHAT, (), 1_000, output_tokens=100, failed=frozenset({Address("a:1")}))


def test_one_that_asks_for_as_much_or_more_is_covered() -> None:
    unserved = Unserved()
    assert not unserved.covers(ONE)
    unserved.note(ONE)
    assert unserved.covers(ONE)
    assert unserved.covers(replace(ONE, prompt_bytes=2_000, session="s", prompt=(b"other",)))
    assert not unserved.covers(replace(ONE, prompt_bytes=999))
    assert not unserved.covers(replace(ONE, output_tokens=99))
    assert not unserved.covers(replace(ONE, output_tokens=None))


def test_one_of_another_kind_is_not() -> None:
    unserved = Unserved()
    unserved.note(ONE)
    others = [
        replace(ONE, failed=frozenset()),
        replace(ONE, model="n"),
        replace(ONE, tenant="t"),
        replace(ONE, needs=frozenset(Need)),
        replace(ONE, api=Api.ANTHROPIC_MESSAGES),
    ]
    assert not any(map(unserved.covers, others))

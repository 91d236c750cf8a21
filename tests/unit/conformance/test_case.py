import json

import pytest

from kinference.conformance.case import Probe, case, chat
from kinference.conformance.claims import Unexpected
from kinference.conformance.target import MODEL


@case("P1", "P2", needs=(MODEL,))
async def a_declared_case(probe: Probe) -> None:
    await probe.client.push(b"x")


async def test_a_case_is_named_for_its_module_and_itself(probe: Probe) -> None:
    assert a_declared_case.name == "test-case.a-declared-case"
    assert (a_declared_case.clauses, a_declared_case.needs) == (("P1", "P2"), (MODEL,))
    await a_declared_case.body(probe)


def test_padding_makes_a_body_long_and_leaves_its_text_alone() -> None:
    body = json.loads(chat("m", "hello", padding=1000))
    assert (body["model"], body["messages"][0]["content"]) == ("m", "hello")
    assert len(chat("m", "hello", padding=1000)) > 1000


async def test_a_choice_that_is_none_says_the_reason(probe: Probe) -> None:
    with pytest.raises(Unexpected, match="no destination for model 'nobody'"):
        await probe.choice(chat("nobody", "hello"))


async def test_a_large_choice_fits_no_single_chunk(probe: Probe) -> None:
    picked = await probe.large_choice(2_000_000)
    assert picked.body_total_bytes > 2_000_000

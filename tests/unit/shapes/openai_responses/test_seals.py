import pytest

from kinference.shapes.ir import Reasoning, Sealed
from kinference.shapes.openai_responses.seals import sealed, unsealed
from kinference.vocabulary import Api

ISSUER = Api.ANTHROPIC_MESSAGES


@pytest.mark.parametrize("thought", [Reasoning("r", "s", ISSUER), Sealed("d", ISSUER)])
def test_a_seal_comes_back_as_its_issuer_gave_it(thought: Reasoning | Sealed) -> None:
    seal = sealed(thought)
    assert seal is not None
    assert unsealed(seal, "r") == thought


def test_what_nobody_signed_has_no_seal() -> None:
    assert sealed(Reasoning("r")) is None


@pytest.mark.parametrize("content", ["gAAAAAB", "kinference.", "kinference.é", "kinference.e30=", "kinference.W10="])
def test_a_seal_of_others_is_left_to_them(content: str) -> None:
    assert unsealed(content, "r") is None

import pytest

from kinference.shapes.concepts import TARGETS, Concept, Treatment, as_named, name_of, treatment
from kinference.shapes.translate import CLIENTS
from kinference.vocabulary import Api


def test_every_concept_has_a_treatment_at_every_target() -> None:
    assert all(isinstance(treatment(concept, target), Treatment) for concept in Concept for target in TARGETS)


def test_a_concept_is_called_what_the_clients_api_calls_it() -> None:
    assert name_of(Concept.STOP, CLIENTS[Api.OPENAI_CHAT].fields) == "stop"
    assert name_of(Concept.STOP, CLIENTS[Api.ANTHROPIC_MESSAGES].fields) == "stop_sequences"
    assert name_of(Concept.ALLOWED_TOOLS, CLIENTS[Api.OPENAI_CHAT].fields) == "tool_choice.allowed_tools"
    assert name_of(Concept.SEED, CLIENTS[Api.ANTHROPIC_MESSAGES].fields) == "seed"


def test_of_several_names_that_counts_which_the_body_has() -> None:
    fields = CLIENTS[Api.OPENAI_CHAT].fields
    for name, concept in (
        ("max_tokens", Concept.MAX_TOKENS),
        ("max_completion_tokens", Concept.MAX_TOKENS),
        ("presence_penalty", Concept.PENALTIES),
        ("functions", Concept.TOOLS),
        ("user", Concept.END_USER),
    ):
        assert name_of(concept, as_named(fields, {"model": "m", name: 1, "unknown": 1})) == name
    assert as_named(fields, {}) == fields


@pytest.mark.parametrize(
    ("concept", "name"),
    [(Concept.FILE_URL, "document.source"), (Concept.IMAGE_URL, "source.url")],
)
def test_what_has_no_field_of_its_own_is_named_by_the_nearest(concept: Concept, name: str) -> None:
    assert name_of(concept, CLIENTS[Api.ANTHROPIC_MESSAGES].fields) == name

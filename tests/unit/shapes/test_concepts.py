from kinference.shapes.concepts import TARGETS, Concept, Treatment, name_of, treatment
from kinference.shapes.translate import CLIENTS
from kinference.vocabulary import Api


def test_every_concept_has_a_treatment_at_every_target() -> None:
    assert all(isinstance(treatment(concept, target), Treatment) for concept in Concept for target in TARGETS)


def test_a_concept_is_called_what_the_clients_api_calls_it() -> None:
    assert name_of(Concept.STOP, CLIENTS[Api.OPENAI_CHAT].fields) == "stop"
    assert name_of(Concept.STOP, CLIENTS[Api.ANTHROPIC_MESSAGES].fields) == "stop_sequences"
    assert name_of(Concept.ALLOWED_TOOLS, CLIENTS[Api.OPENAI_CHAT].fields) == "tool_choice.allowed_tools"
    assert name_of(Concept.SEED, CLIENTS[Api.ANTHROPIC_MESSAGES].fields) == "seed"

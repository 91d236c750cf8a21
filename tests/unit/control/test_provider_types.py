import pytest

from kinference.control.provider_types import BY_NAME, TYPES, type_named


@pytest.mark.parametrize("spelled", ["openai", " OpenAI ", "OPENAI\n"])
def test_fact30_a_type_is_found_in_any_case_and_with_spaces_around(spelled: str) -> None:
    kind = type_named(spelled)
    assert kind is not None
    assert kind.name == "openai"


@pytest.mark.parametrize("name", ["generic", "claude", "codex", "opencode", "gitlab", "github", "outlook", ""])
def test_fact7_other_types_cannot_serve_inference(name: str) -> None:
    assert type_named(name) is None


def test_no_two_types_share_a_name() -> None:
    assert len(BY_NAME) == sum(1 + len(kind.aliases) for kind in TYPES)


def test_fact26_protocols_are_in_the_order_of_the_original() -> None:
    openai = (
        "openai_chat_completions",
        "openai_completions",
        "openai_responses",
        "openai_embeddings",
        "model_discovery",
    )
    assert BY_NAME["openai"].protocols == BY_NAME["nvidia"].protocols == BY_NAME["deepinfra"].protocols == openai
    assert BY_NAME["anthropic"].protocols == ("anthropic_messages", "model_discovery")
    assert BY_NAME["aws-bedrock"].protocols == ("aws_bedrock_invoke",)


def test_every_type_can_have_its_base_url_set() -> None:
    assert all(kind.base_url_keys for kind in TYPES)

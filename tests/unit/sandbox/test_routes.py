from kinference.control.provider_types import Auth
from kinference.sandbox.routes import RouteTable, SandboxRoute

OPENAI = SandboxRoute("inference.local", "https://h", ("openai_chat_completions",), "sk-1", "m", "OpenAI")
ANTHROPIC = SandboxRoute("second", "https://a", ("anthropic_messages", "openai_chat_completions"), "sk-2", "n", "new")
SYSTEM = SandboxRoute("sandbox-system", "https://s", ("openai_embeddings",), "sk-3", "s")


def test_the_first_route_that_speaks_a_protocol_serves_it() -> None:
    table = RouteTable([OPENAI, ANTHROPIC])
    assert table.serving("openai_chat_completions") is OPENAI
    assert table.serving("anthropic_messages") is ANTHROPIC
    assert table.serving("openai_embeddings") is None


def test_fact59_the_sandboxs_own_route_is_not_for_its_programs() -> None:
    table = RouteTable([SYSTEM])
    assert table.is_empty
    assert table.serving("openai_embeddings") is None


def test_routes_are_replaced_as_a_whole() -> None:
    table = RouteTable([OPENAI])
    table.replace([ANTHROPIC])
    assert table.serving("openai_chat_completions") is ANTHROPIC
    table.replace([])
    assert table.is_empty


def test_a_type_that_is_not_known_yet_takes_a_bearer() -> None:
    assert ANTHROPIC.kind.auth is Auth.BEARER
    assert OPENAI.kind.name == "openai"


def test_fact63_no_route_prints_its_key() -> None:
    assert "sk-1" not in repr(OPENAI)

"""What is known of each type of provider: one row a type."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

OPENAI_PROTOCOLS = (
    "openai_chat_completions",
    "openai_completions",
    "openai_responses",
    "openai_embeddings",
    "model_discovery",
)
ANTHROPIC_PROTOCOLS = ("anthropic_messages", "model_discovery")
ANTHROPIC_DEFAULTS = (("anthropic-version", "2023-06-01"),)


class Auth(Enum):
    """How a provider wants to see its credential."""

    BEARER = auto()
    API_KEY_HEADER = auto()
    NONE = auto()


class Family(Enum):
    """Whose rules make the URL."""

    PLAIN = auto()
    VERTEX = auto()
    BEDROCK = auto()


@dataclass(frozen=True, slots=True)
class ProviderType:
    """How records of a type are resolved. Keys are tried in order."""

    name: str
    base_url: str
    base_url_keys: tuple[str, ...]
    credential_keys: tuple[str, ...]
    protocols: tuple[str, ...] = OPENAI_PROTOCOLS
    aliases: tuple[str, ...] = ()
    auth: Auth = Auth.BEARER
    default_headers: tuple[tuple[str, str], ...] = ()
    family: Family = Family.PLAIN
    any_credential: bool = True
    """Whether a credential under another key will do."""
    needs_credential: bool = True
    told_as: str = ""
    """The type that consumers of a bundle know it by; "" for its own name."""
    path_override: str | None = None
    """The path after the base URL, where the API has no `/v1`."""


TYPES: tuple[ProviderType, ...] = (
    ProviderType("openai", "https://api.openai.com/v1", ("OPENAI_BASE_URL",), ("OPENAI_API_KEY",)),
    ProviderType(
        "anthropic",
        "https://api.anthropic.com/v1",
        ("ANTHROPIC_BASE_URL",),
        ("ANTHROPIC_API_KEY",),
        ANTHROPIC_PROTOCOLS,
        auth=Auth.API_KEY_HEADER,
        default_headers=ANTHROPIC_DEFAULTS,
    ),
    ProviderType("nvidia", "https://integrate.api.nvidia.com/v1", ("NVIDIA_BASE_URL",), ("NVIDIA_API_KEY",)),
    ProviderType("deepinfra", "https://api.deepinfra.com/v1/openai", ("DEEPINFRA_BASE_URL",), ("DEEPINFRA_API_KEY",)),
    ProviderType(
        "google-vertex-ai",
        "",
        ("GOOGLE_VERTEX_AI_BASE_URL", "VERTEX_AI_BASE_URL"),
        (
            "GOOGLE_VERTEX_AI_SERVICE_ACCOUNT_TOKEN",
            "VERTEX_AI_SERVICE_ACCOUNT_TOKEN",
            "GOOGLE_VERTEX_AI_TOKEN",
            "VERTEX_AI_TOKEN",
        ),
        (),
        aliases=("vertex", "vertex-ai", "google-vertex", "gcp-vertex"),
        family=Family.VERTEX,
        any_credential=False,
    ),
    ProviderType(
        "aws-bedrock",
        "",
        ("BEDROCK_BASE_URL",),
        (),
        ("aws_bedrock_invoke",),
        auth=Auth.NONE,
        family=Family.BEDROCK,
        any_credential=False,
        needs_credential=False,
    ),
    ProviderType(
        "azure-openai",
        "",
        ("AZURE_OPENAI_BASE_URL",),
        ("AZURE_OPENAI_API_KEY",),
        aliases=("azure",),
        told_as="openai",
    ),
    ProviderType(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        ("GEMINI_BASE_URL",),
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        ("openai_chat_completions",),
        told_as="openai",
        path_override="/chat/completions",
    ),
    ProviderType(
        "openai-compatible",
        "",
        ("OPENAI_BASE_URL",),
        ("OPENAI_API_KEY",),
        needs_credential=False,
        told_as="openai",
    ),
)

BY_NAME: Mapping[str, ProviderType] = {name: each for each in TYPES for name in (each.name, *each.aliases)}


def type_named(name: str) -> ProviderType | None:
    """The row of a type, spelled in any case and with spaces around; None when it cannot serve inference."""
    return BY_NAME.get(name.strip().lower())

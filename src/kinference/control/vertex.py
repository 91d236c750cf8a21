"""Where a model of Google Vertex AI is served: project, region and publisher make the URL."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from kinference.control.errors import Unmet
from kinference.errors import InvalidArgument

PROJECT_KEYS = ("GOOGLE_VERTEX_AI_PROJECT", "VERTEX_AI_PROJECT", "VERTEX_AI_PROJECT_ID")
REGION_KEYS = ("GOOGLE_VERTEX_AI_REGION", "VERTEX_AI_REGION", "VERTEX_AI_LOCATION")
PUBLISHER_KEY = "VERTEX_AI_PUBLISHER"
REGION_DEFAULT = "us-central1"
ANTHROPIC = "anthropic"

PUBLISHERS = (
    ("claude-", ANTHROPIC),
    *((prefix, "google") for prefix in ("gemini-", "text-bison-", "chat-bison-")),
    ("llama-", "meta"),
    *((prefix, "mistralai") for prefix in ("mistral-", "codestral-")),
    ("jamba-", "ai21"),
    ("deepseek-", "deepseek"),
)
"""Whose a model is, by how its name begins."""

_ANTHROPIC_MODELS, _OPENAPI = "/publishers/anthropic/models", "/endpoints/openapi"
_PROJECT = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")
_REGION = re.compile(r"[a-z]+(-[a-z]+[0-9]+)?")
_HOST = re.compile(r"([a-z0-9-]+-)?aiplatform(\.(us|eu)\.rep)?\.googleapis\.com")


@dataclass(frozen=True, slots=True)
class VertexRoute:
    """One model's place."""

    base_url: str
    protocol: str
    model_id: str
    model_in_path: bool
    path_override: str


def vertex_route(config: Mapping[str, str], base_url: str, model_id: str) -> VertexRoute:
    """Where the model is; `base_url` is the record's own, "" for none. Raises InvalidArgument or Unmet."""
    check_path_model(model_id)
    publisher = _publisher(config, model_id)
    place = f"projects/{_project(config)}/locations/{_region(config)}"
    if publisher == ANTHROPIC:
        if base_url:
            raise InvalidArgument("a Vertex AI base URL cannot be set for Anthropic models; take it out of the record")
        host = f"https://{_host(_region(config))}"
        base = f"{host}/v1/{place}{_ANTHROPIC_MODELS}"
        return VertexRoute(base, "anthropic_messages", model_id, model_in_path=True, path_override=":rawPredict")
    if base_url:
        _check_override(base_url)
    base = base_url or f"https://{_host(_region(config))}/v1beta1/{place}{_OPENAPI}"
    named = f"{publisher}/{model_id}" if publisher else model_id
    return VertexRoute(base, "openai_chat_completions", named, model_in_path=False, path_override="/chat/completions")


def root_of(base_url: str) -> str:
    """The project and location alone, under which every API of Vertex has a path of its own."""
    return base_url.removesuffix(_ANTHROPIC_MODELS).removesuffix(_OPENAPI)


def check_path_model(model_id: str) -> None:
    """A model id that becomes part of a path must not lead elsewhere. Raises InvalidArgument."""
    if not model_id or ".." in model_id or re.search(r"[/\\?#%\s\x00-\x1f\x7f-\x9f]", model_id):
        raise InvalidArgument("model_id must not be empty nor hold / \\ ? # % .. white space or control characters")


def _publisher(config: Mapping[str, str], model_id: str) -> str:
    """Whose the model is; "" when nobody is known: it is then named as it is."""
    named = config.get(PUBLISHER_KEY, "").strip()
    if named:
        return ANTHROPIC if named.lower() == ANTHROPIC else named
    return next((publisher for prefix, publisher in PUBLISHERS if model_id.startswith(prefix)), "")


def _project(config: Mapping[str, str]) -> str:
    project = first(config, PROJECT_KEYS).strip()
    if not project:
        raise Unmet(f"the provider's record names no project; set {PROJECT_KEYS[0]} in its config")
    if _PROJECT.fullmatch(project) is None:
        raise InvalidArgument("the Vertex AI project must be 6 to 30 of a-z, 0-9 and -, a letter first, no - last")
    return project


def _region(config: Mapping[str, str]) -> str:
    region = first(config, REGION_KEYS).strip() or REGION_DEFAULT
    if _REGION.fullmatch(region) is None:
        raise InvalidArgument("the Vertex AI region must look like us-central1, us, eu or global")
    return region


def _host(region: str) -> str:
    if region == "global":
        return "aiplatform.googleapis.com"
    return (
        f"aiplatform.{region}.rep.googleapis.com" if region in ("us", "eu") else f"{region}-aiplatform.googleapis.com"
    )


def _check_override(base_url: str) -> None:
    try:
        parts = urlsplit(base_url)
        fits = _is_official(parts)
    except ValueError:
        fits = False
    if not fits:
        raise InvalidArgument(
            "a Vertex AI base URL must be https, on an aiplatform.googleapis.com host, port 443, without user, query "
            "or fragment"
        )


def _is_official(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    return (
        parts.scheme == "https"
        and _HOST.fullmatch(host) is not None
        and "@" not in parts.netloc
        and not parts.query
        and not parts.fragment
        and parts.port in (None, 443)
    )


def first(values: Mapping[str, str], keys: tuple[str, ...]) -> str:
    """The first value under these keys that is more than white space, as it is; "" when there is none."""
    return next((values[key] for key in keys if values.get(key, "").strip()), "")

"""Where each API is served, and how a model's name stands in a path: as one segment that it cannot leave."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from kinference.shapes.scan import BadBody
from kinference.vocabulary import Api

_MODEL: Final = "{model}"
AZURE_VERSION: Final = "2024-10-21"

_BY_CLIENT: Final[Mapping[Api, str]] = {
    Api.OPENAI_CHAT: "chat/completions",
    Api.OPENAI_RESPONSES: "responses",
    Api.OPENAI_COMPLETIONS: "completions",
    Api.OPENAI_EMBEDDINGS: "embeddings",
}
_PATHS: Final[Mapping[Api, tuple[str, str]]] = {
    # whole                               stream
    Api.OPENAI_CHAT: ("/v1/chat/completions", "/v1/chat/completions"),
    Api.OPENAI_RESPONSES: ("/v1/responses", "/v1/responses"),
    Api.ANTHROPIC_MESSAGES: ("/v1/messages", "/v1/messages"),
    Api.GEMINI: (f"/v1beta/models/{_MODEL}:generateContent", f"/v1beta/models/{_MODEL}:streamGenerateContent?alt=sse"),
    Api.BEDROCK_CONVERSE: (f"/model/{_MODEL}/converse", f"/model/{_MODEL}/converse-stream"),
    Api.VERTEX_OPENAI: ("/endpoints/openapi/chat/completions", "/endpoints/openapi/chat/completions"),
    Api.VERTEX_ANTHROPIC: (
        f"/publishers/anthropic/models/{_MODEL}:rawPredict",
        f"/publishers/anthropic/models/{_MODEL}:streamRawPredict",
    ),
    Api.VERTEX_GEMINI: (
        f"/publishers/google/models/{_MODEL}:generateContent",
        f"/publishers/google/models/{_MODEL}:streamGenerateContent?alt=sse",
    ),
}
EMBED_PATHS: Final[Mapping[Api, str]] = {
    Api.GEMINI: f"/v1beta/models/{_MODEL}:batchEmbedContents",
    Api.VERTEX_GEMINI: f"/publishers/google/models/{_MODEL}:predict",
    Api.BEDROCK_CONVERSE: f"/model/{_MODEL}/invoke",
}
"""Where those APIs embed that OpenAI's embeddings can be translated to."""
_KEPT: Final = frozenset(
    (
        Api.OPENAI_CHAT,
        Api.OPENAI_RESPONSES,
        Api.OPENAI_COMPLETIONS,
        Api.OPENAI_EMBEDDINGS,
        Api.ANTHROPIC_MESSAGES,
    )
)
"""APIs whose clients' paths do where nothing is translated: the model is in the body."""


def path_to(destination: Api, client: Api, model: str, *, streaming: bool) -> str:
    """The path and query for a body of the client's, or translated from it; "" leaves the client's own.

    Raises BadBody for a model that cannot be named in a path.
    """
    if destination is Api.AZURE_OPENAI:
        action = _BY_CLIENT.get(client, _BY_CLIENT[Api.OPENAI_CHAT])
        if action == "responses":  # has no deployments: the model is in the body
            return "/openai/v1/responses"
        template = f"/openai/deployments/{_MODEL}/{action}?api-version={AZURE_VERSION}"
    elif destination is client and client in _KEPT:
        return ""
    elif client is Api.OPENAI_EMBEDDINGS:
        template = EMBED_PATHS[destination]
    else:
        template = _PATHS[destination][streaming]
    return filled(template, model)


def filled(template: str, model: str) -> str:
    """A path with the model in its place. Raises BadBody."""
    return template.replace(_MODEL, segment(model)) if _MODEL in template else template


def segment(model: str) -> str:
    """A model's name as one segment. Raises BadBody where it is a way to somewhere else."""
    if any(part in ("", ".", "..") for part in model.split("/")) or not model.isprintable():
        raise BadBody("model: not a name that can stand in a path")
    return quote(model, safe="")

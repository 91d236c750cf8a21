"""From one API to another: the request for the destination, and what its answer needs on the way back.

Nothing here is pairwise: each API is read into the one representation and written from it.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from kinference.shapes import (
    anthropic_messages,
    bedrock_converse,
    gemini,
    openai_chat,
    openai_completions,
    openai_embeddings,
    openai_responses,
)
from kinference.shapes.alternate import check_speakers
from kinference.shapes.call_ids import distinct
from kinference.shapes.clamps import OPENAI_ID_MAX
from kinference.shapes.concepts import Concept, Treatment, as_named, treatment
from kinference.shapes.dialects import Client, Destination, Reader
from kinference.shapes.hosted_tools import without_hosted
from kinference.shapes.hosts import check_vertex
from kinference.shapes.ir import Json, Request
from kinference.shapes.json_hints import hinted, only_hints
from kinference.shapes.json_text import dumps, loads, loads_mended, object_of
from kinference.shapes.loss import fit
from kinference.shapes.lost import Lost, Untranslatable, header
from kinference.shapes.paths import EMBED_PATHS
from kinference.shapes.reasoners import is_openais
from kinference.shapes.scan import BadBody
from kinference.shapes.simple import simple
from kinference.shapes.tooling import NAME_MAX, Tooling, fit_tools
from kinference.structs import Frozen
from kinference.vocabulary import Api, Loss, Need

CLIENTS: Final[Mapping[Api, Client]] = {
    Api.OPENAI_CHAT: openai_chat.CLIENT,
    Api.OPENAI_RESPONSES: openai_responses.CLIENT,
    Api.OPENAI_COMPLETIONS: openai_completions.CLIENT,
    Api.OPENAI_EMBEDDINGS: openai_embeddings.CLIENT,
    Api.ANTHROPIC_MESSAGES: anthropic_messages.CLIENT,
    Api.GEMINI: gemini.CLIENT,
}
DESTINATIONS: Final[Mapping[Api, Destination]] = {
    Api.OPENAI_CHAT: openai_chat.DESTINATION,
    Api.OPENAI_RESPONSES: openai_responses.DESTINATION,
    Api.ANTHROPIC_MESSAGES: anthropic_messages.DESTINATION,
    Api.GEMINI: gemini.DESTINATION,
    Api.BEDROCK_CONVERSE: bedrock_converse.DESTINATION,
}
_LIKE_OPENAI: Final = (Api.OPENAI_CHAT, Api.VERTEX_OPENAI)
"""Spoken by many servers, whatever their model; Azure serves OpenAI's, under names that do not tell."""
_WRAPPING: Final = frozenset(api for api in DESTINATIONS if treatment(Concept.FREE_FORM_TOOLS, api) is Treatment.MAPPED)
"""Those whose tools are functions only."""
_SILENT: Final = Loss.SILENT
_STRICT: Final = Loss.STRICT
"""Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant."""


class Way(Frozen, frozen=True):
    """What a translation is between, and for whom."""

    client: Api
    destination: Api
    model: str
    """What the destination calls it."""
    loss: Loss = Loss.WARN
    streams: bool = False
    """Known to be a stream, also where only the client's path says so."""
    extends_chat: bool = False
    """The destination is an engine that takes what vLLM adds to Chat."""
    yields: bool = False
    """Rather than be refused, the request goes without tools that only another provider runs."""


class Return(Frozen, frozen=True):
    """What an answer needs on its way back."""

    client: Api
    destination: Api
    model: str
    is_streaming: bool
    wants_usage: bool
    tooling: Tooling
    is_bare_json: bool
    """The answer was asked to be JSON in words alone, which models like to put into a fence."""
    tells: bool
    """The client is told of what is lost."""
    echo: Mapping[str, Any]
    is_choice: bool = False
    """The answer is an object of which the client wants the one word in it."""


class WayBack(Frozen, frozen=True):
    """How a translated request's answer comes back, and what the client is told of what was lost."""

    back: Return
    warnings: str


class Plan(Frozen, frozen=True):
    """A translation that can be done."""

    request: Request
    losses: tuple[Lost, ...]
    back: Return


def translates(client: Api, destination: Api) -> bool:
    """Whether there is a way from one API to the other."""
    if client is Api.OPENAI_EMBEDDINGS:
        return destination in EMBED_PATHS
    return client in CLIENTS and destination.shape in DESTINATIONS


_REACHES: Final[Mapping[Api, frozenset[Api]]] = {
    client: frozenset(api for api in Api if translates(client, api)) for client in CLIENTS
}
_NONE: Final[frozenset[Api]] = frozenset()
_CONCEPTS: Final[Mapping[Need, Concept]] = {
    Need.AUDIO: Concept.AUDIO,
    Need.LOGPROBS: Concept.LOGPROBS,
    Need.SEVERAL_ANSWERS: Concept.SEVERAL_ANSWERS,
    Need.LOGIT_BIAS: Concept.LOGIT_BIAS,
}
"""Needs that some APIs cannot be told of."""


def reaches(client: Api, needs: frozenset[Need]) -> frozenset[Api]:
    """The APIs to which a request with these needs can be translated, as far as its needs tell."""
    if not needs:
        return _REACHES.get(client, _NONE)
    if Need.TOKEN_PROMPT in needs:  # tokens mean something to their own model alone
        return _NONE
    apis = _REACHES.get(client, _NONE)
    asked = [_CONCEPTS[need] for need in needs if need in _CONCEPTS]
    if asked:
        apis = frozenset(api for api in apis if all(_carries(api.shape, concept) for concept in asked))
    return apis


def _carries(shape: Api, concept: Concept) -> bool:
    return treatment(concept, shape) is not Treatment.REFUSED


def plan(body: bytes, way: Way) -> Plan:
    """Read a request and fit it to the destination's API. Raises BadBody, and Untranslatable among them."""
    value, is_mended = loads_mended(body)
    fields = object_of(value, "body")
    try:
        planned = _plan(fields, way)
    except Untranslatable:
        if not way.yields or way.loss is _STRICT:
            raise
        fields, dropped = without_hosted(fields, way.client, lambda fewer: _can(fewer, way))
        if not dropped:
            raise
        planned = _plan(fields, way)
        planned = replace(planned, losses=(*dropped, *planned.losses))
    if is_mended:
        planned = replace(planned, losses=(*planned.losses, Lost("replaced", "lone surrogates")))
    return replace(planned, losses=()) if way.loss is _SILENT else planned


def _can(fields: Json, way: Way) -> bool:
    try:
        emit(_plan(fields, way))
    except BadBody:
        return False
    return True


def _plan(fields: Json, way: Way) -> Plan:
    client, shape = CLIENTS[way.client], way.destination.shape
    request = client.parse_request(fields)
    turns, seen = request.turns, simple(request.turns)
    if seen is None:
        check_speakers(turns)
        turns = tuple(distinct(turns))
    is_plain = way.destination in _LIKE_OPENAI and not is_openais(way.model)
    is_extended = way.extends_chat and shape is Api.OPENAI_CHAT
    request = replace(
        request,
        model=way.model,
        turns=turns,
        simple=seen,
        is_streaming=request.is_streaming or way.streams,
        is_plain_chat=is_plain,
        is_extended_chat=is_extended,
    )
    if way.destination is Api.VERTEX_ANTHROPIC:
        check_vertex(request)
    request, losses = fit(request, as_named(client.fields, fields), shape, way.loss)
    is_hinted, is_choice = only_hints(request, shape), request.format is not None and request.format.is_choice
    request = hinted(request, shape)
    id_max = OPENAI_ID_MAX if shape is Api.OPENAI_CHAT and not (is_plain or is_extended) else NAME_MAX
    request, tooling = fit_tools(request, wraps=is_plain or shape in _WRAPPING, id_max=id_max)
    back = Return(
        way.client,
        shape,
        way.model,
        request.is_streaming,
        request.wants_usage,
        tooling,
        is_hinted,
        way.loss is not _SILENT,
        {name: fields[name] for name in client.echoed if name in fields},
        is_choice,
    )
    return Plan(request, losses, back)


def unasked(body: bytes, way: Way, *, wants_usage: bool) -> WayBack | None:
    """The way back of an answer in the client's own API that is a stream where none was asked for, or none where one
    was, as the client asked for it; None where it cannot be put so. Raises BadBody.
    """
    shape = way.destination.shape
    fields = object_of(loads(body), "body")
    if shape not in DESTINATIONS or fields.get("n") not in (None, 1):
        return None
    echo = {name: fields[name] for name in CLIENTS[way.client].echoed if name in fields}
    back = Return(way.client, shape, way.model, way.streams, wants_usage, Tooling(), False, True, echo)
    return WayBack(back, "")


def reader_of(back: Return) -> Reader:
    """What cuts the destination's stream into events."""
    return DESTINATIONS[back.destination].reader()


def emit(planned: Plan) -> bytes:
    """The body for the destination. Raises Untranslatable."""
    return dumps(DESTINATIONS[planned.back.destination].emit_request(planned.request))


def translated(body: bytes, way: Way) -> tuple[bytes, WayBack]:
    """The body for the destination, and what leads its answer back. Raises BadBody."""
    planned = plan(body, way)
    return emit(planned), WayBack(planned.back, header(planned.losses))

"""The body and the path for a chosen destination: patched where it speaks the client's API, else translated."""

from typing import Final

from kinference.core.decision import BackendChoice, EndpointChoice
from kinference.ports import PickArguments
from kinference.shapes.counting import count_path, count_request, is_count
from kinference.shapes.detect import Parsed
from kinference.shapes.foreign_thoughts import without_foreign_thoughts
from kinference.shapes.hosts import hosted
from kinference.shapes.patch import replace_model, set_member
from kinference.shapes.paths import filled, path_to
from kinference.shapes.translate import Way, WayBack, translated
from kinference.structs import Frozen
from kinference.vocabulary import Api

_GEMINI: Final = Api.GEMINI
_EMBEDDINGS: Final = Api.OPENAI_EMBEDDINGS
"""Read once: Python 3.11 finds a member of an enum by a hook of its metaclass, at ten times the price of a constant."""


class Rewritten(Frozen, frozen=True):
    """What to send. No body means the client's own, as it is; no path the client's."""

    body: bytes | None
    path: str = ""
    way_back: WayBack | None = None
    """Where the body was translated."""


def rewrite(
    body: bytes,
    parsed: Parsed,
    choice: EndpointChoice | BackendChoice,
    arguments: PickArguments,
    *,
    yields: bool = False,
) -> Rewritten:
    """Make the body what the choice takes; `yields`: without tools that only another provider runs. Raises BadBody, and
    Untranslatable where another API might do.
    """
    if is_count(arguments.request_path):
        return _counting(body, parsed, choice, arguments)
    if isinstance(choice, EndpointChoice):
        api = parsed.api.at_engines
        if api is parsed.api:
            return Rewritten(_salted(_patched(body, parsed, choice), body, parsed))
        extends = choice.engine.extends_chat
        way = Way(parsed.api, api, choice.model, arguments.loss, parsed.streaming, extends, yields)
        made, way_back = translated(body, way)
        return Rewritten(_salted(made, body, parsed), "", way_back)
    path = _path(choice, parsed)
    if not choice.api.speaks(parsed.api):
        way = Way(parsed.api, choice.api, choice.model, arguments.loss, parsed.streaming, yields=yields)
        made, way_back = translated(body, way)
        return Rewritten(hosted(made, choice.api), path, way_back)
    patched = _patched(body, parsed, choice)
    whole = body if patched is None else patched
    final = hosted(whole, choice.api)
    return Rewritten(None if final is body else final, path)


def _counting(
    body: bytes, parsed: Parsed, choice: EndpointChoice | BackendChoice, arguments: PickArguments
) -> Rewritten:
    """As `rewrite`, for a body whose tokens are to be counted."""
    if isinstance(choice, EndpointChoice):
        api, speaks, path = parsed.api.at_engines, parsed.api.at_engines is parsed.api, ""
    else:
        api, speaks = choice.api, choice.api.speaks(parsed.api) and choice.api is not Api.VERTEX_ANTHROPIC
        path = "" if api is parsed.api and api is not Api.GEMINI else count_path(api, parsed.api, choice.model)
    if speaks:
        return Rewritten(_patched(body, parsed, choice), path)
    return Rewritten(count_request(body, Way(parsed.api, api, choice.model, arguments.loss, yields=True)), path)


def _path(choice: BackendChoice, parsed: Parsed) -> str:
    """The configured path, else the API's own."""
    if choice.path:
        return filled(choice.path, choice.model)
    return path_to(choice.api, parsed.api, choice.model, streaming=parsed.streaming)


def _patched(body: bytes, parsed: Parsed, choice: EndpointChoice | BackendChoice) -> bytes | None:
    is_named = choice.model == parsed.model or parsed.api is _GEMINI
    named = body if is_named else replace_model(body, choice.model)
    final = without_foreign_thoughts(named, parsed.api, at_provider=isinstance(choice, BackendChoice))
    return None if final is body else final


def _salted(made: bytes | None, body: bytes, parsed: Parsed) -> bytes | None:
    """What sets a tenant's prompts apart is told to the engine, who keeps their prefixes apart by it."""
    if parsed.has_own_salt or parsed.api is _EMBEDDINGS:
        return made
    return set_member(body if made is None else made, "cache_salt", parsed.salt)

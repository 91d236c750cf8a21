"""The HTTP surface in one table: which path takes which methods, speaks which API and is answered how."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from kinference.vocabulary import Api


class Dialect(Enum):
    """Whose shape our own errors and lists are written in."""

    OPENAI = auto()
    ANTHROPIC = auto()
    GEMINI = auto()


class Duty(Enum):
    """What a route does."""

    INFER = auto()
    LIST_MODELS = auto()
    SHOW_MODEL = auto()
    HEALTH = auto()


@dataclass(frozen=True, slots=True)
class Route:
    """One line of the table. `api` is the shape of the bodies; only what infers has one."""

    duty: Duty
    methods: tuple[str, ...]
    api: Api | None = None
    runs_prompt: bool = True
    """Whether an engine computes the prompt, so that its time and its prefix cache tell something; else its tokens are
    counted.
    """

    @property
    def allow(self) -> bytes:
        """The `allow` header of a 405."""
        return ", ".join(self.methods).encode()


def _infer(api: Api, *, runs_prompt: bool = True) -> Route:
    return Route(Duty.INFER, ("POST",), api, runs_prompt)


ROUTES: Final = {
    "/": Route(Duty.HEALTH, ("GET", "HEAD")),
    "/health": Route(Duty.HEALTH, ("GET", "HEAD")),
    "/v1/models": Route(Duty.LIST_MODELS, ("GET",)),
    "/v1beta/models": Route(Duty.LIST_MODELS, ("GET",)),
    "/v1/chat/completions": _infer(Api.OPENAI_CHAT),
    "/v1/completions": _infer(Api.OPENAI_COMPLETIONS),
    "/v1/responses": _infer(Api.OPENAI_RESPONSES),
    "/v1/embeddings": _infer(Api.OPENAI_EMBEDDINGS),
    "/v1/messages": _infer(Api.ANTHROPIC_MESSAGES),
    "/v1/messages/count_tokens": _infer(Api.ANTHROPIC_MESSAGES, runs_prompt=False),
    "/v1/responses/input_tokens": _infer(Api.OPENAI_RESPONSES, runs_prompt=False),
}

_MODEL_PREFIXES: Final[tuple[str, ...]] = ("/v1/models/", "/v1beta/models/")
"""What follows is a model's id, slashes and all; or, for Gemini, the id as one segment, a colon and an action."""
_GEMINI_ACTIONS: Final[tuple[str, ...]] = (":generateContent", ":streamGenerateContent")
_GEMINI_COUNT: Final = ":countTokens"
_GEMINI: Final = _infer(Api.GEMINI)
_GEMINI_COUNTING: Final = _infer(Api.GEMINI, runs_prompt=False)
_ONE_MODEL: Final = Route(Duty.SHOW_MODEL, ("GET",))


SERVED: Final = (
    *(path for path, route in ROUTES.items() if route.duty is not Duty.HEALTH),
    *(f"{_MODEL_PREFIXES[-1]}MODEL{action}" for action in (*_GEMINI_ACTIONS, _GEMINI_COUNT)),
)
"""What a client may have been looking for."""


def find(path: str) -> Route | None:
    """The route of a path; None when there is none."""
    route = ROUTES.get(path)
    if route is None and _is_gemini(path):
        return _GEMINI_COUNTING if path.endswith(_GEMINI_COUNT) else _GEMINI
    if route is None and shown_by(path):
        return _ONE_MODEL
    return route


def shown_by(path: str) -> str:
    """The id, as the path has it, of the model that it shows; "" for none."""
    return next((path[len(prefix) :] for prefix in _MODEL_PREFIXES if path.startswith(prefix)), "")


def _is_gemini(path: str) -> bool:
    return path.startswith(_MODEL_PREFIXES) and path.endswith((*_GEMINI_ACTIONS, _GEMINI_COUNT))


def missed(path: str) -> str:
    """The path that was meant where a client's base URL has `/v1` once too few or too many; "" when none of ours."""
    meant = path.removeprefix("/v1") if path.startswith("/v1/v1/") else f"/v1{path}"
    return meant if meant in ROUTES else ""


def dialect_of(path: str, *, anthropic_version: bool, google_key: bool = False) -> Dialect:
    """The dialect to answer in, also where no route matches: by path, then by what the client says of itself."""
    if google_key and path.startswith("/v1/models"):
        return Dialect.GEMINI
    if anthropic_version:
        return Dialect.ANTHROPIC
    return _DIALECTS.get(path) or _dialect_by(path)


def _dialect_by(path: str) -> Dialect:
    if path.startswith("/v1/messages"):
        return Dialect.ANTHROPIC
    if path.startswith("/v1beta/") or _is_gemini(path):
        return Dialect.GEMINI
    return Dialect.OPENAI


_DIALECTS: Final = {path: _dialect_by(path) for path in ROUTES}

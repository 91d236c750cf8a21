"""Where a picked destination really is: origins, paths and the gateway's own credentials."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import unquote, urlsplit

from kinference.gateway import headers
from kinference.ids import Address, ObjectRef
from kinference.ports import Headers, LocalTarget, ProviderTarget
from kinference.shapes.counting import TOKENIZE, is_count
from kinference.shapes.paths import path_to
from kinference.vocabulary import Api
from kinference.wire.fields import header
from kinference.wire.sigv4 import AwsKeys

ANTHROPIC_VERSION: Final = b"2023-06-01"
"""Sent to Anthropic where the client named none."""
_NOT_EVERYWHERE: Final = frozenset({Api.ANTHROPIC_MESSAGES, Api.OPENAI_RESPONSES})
"""APIs of engines that some engines lack."""
_AT_ENGINES: Final = {api: api.at_engines for api in Api}
_KEY_FIELDS: Final = {Api.GEMINI: b"x-goog-api-key", Api.AZURE_OPENAI: b"api-key"}
_VERSION: Final = re.compile(r"v\d+(alpha|beta)?\d*")


@dataclass(frozen=True, slots=True)
class EndpointRoute:
    """How to reach an engine endpoint. `origin` is `scheme://host:port`."""

    origin: str
    path_prefix: str = ""
    extends_chat: bool = False
    """Whether it takes what vLLM adds to Chat."""


@dataclass(frozen=True, slots=True)
class BackendRoute:
    """How to reach a provider, and the credential it asks of us."""

    ref: ObjectRef
    base_url: str
    api_key: str = field(repr=False)
    api: Api
    aws: AwsKeys | None = None
    """Signs the requests, where no key goes with them."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model name that clients may ask for. A glob is known but not listed."""

    id: str
    owned_by: str = "kinference"
    created: int = 0
    is_glob: bool = False

    def matches(self, name: str) -> bool:
        """Whether a request for `name` means this."""
        return name == self.id or (self.is_glob and fnmatchcase(name, self.id))


def _everyone(_tenant: str, _model: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Directory:
    """What the gateway looks up, each as it is at the moment of asking. None: nothing known under that name."""

    locate: Callable[[Address], EndpointRoute | None]
    resolve: Callable[[ObjectRef], BackendRoute | None]
    models: Callable[[], Sequence[ServedModel]]
    allows: Callable[[str, str], bool] = _everyone
    """Whether a tenant may use a model; decides what is listed, while the picker decides what is served."""


class Inbound:
    """The client's request as far as dispatch needs it."""

    def __init__(self, path: str, query: str, headers: Headers, request_id: str, api: Api) -> None:
        """`api`: what the client speaks."""
        self.path: Final = path
        self.query: Final = query
        self.headers: Final = headers
        self.request_id: Final = request_id
        self.api: Final = api


class Leg:
    """A resolved destination: where to send, and what beside the body."""

    is_provider = False
    secret = ""
    """Our credential there, so that an answer that repeats it can be cleaned; "" when there is none."""
    aws: AwsKeys | None = None
    """Signs the request once its body is known."""
    may_lack = False
    """Whether it leads to an engine by a path that some engines do not have."""
    extends_chat = False
    """Whether it leads to an engine that takes what vLLM adds to Chat."""

    def __init__(self, name: str, origin: str, target: str, headers: Headers, api: Api) -> None:
        """`api`: what the body and its answer are written in there."""
        self.name: Final = name
        self.origin: Final = origin
        self.target: Final = target
        self.headers: Final = headers
        self.api: Final = api

    def __repr__(self) -> str:
        return f"Leg({self.name!r})"  # neither the secret nor the fields, which carry it too


def leg_to(destination: LocalTarget | ProviderTarget, inbound: Inbound, directory: Directory) -> Leg | None:
    """Resolve a destination; None when the directory does not know it or its path leads astray."""
    if isinstance(destination, LocalTarget):
        endpoint = directory.locate(destination.address)
        return None if endpoint is None else _engine_leg(destination, endpoint, inbound)
    backend = directory.resolve(destination.backend)
    return None if backend is None else _provider_leg(destination, backend, inbound)


def chat_leg_to(destination: LocalTarget, inbound: Inbound, directory: Directory) -> Leg | None:
    """The way to an engine for a client of an API that it turned out not to have; None when it has left."""
    endpoint = directory.locate(destination.address)
    return None if endpoint is None else _engine_leg(destination, endpoint, inbound, in_chat=True)


def _engine_leg(destination: LocalTarget, endpoint: EndpointRoute, inbound: Inbound, *, in_chat: bool = False) -> Leg:
    fields = headers.to_engine(inbound.headers, inbound.request_id)
    api = Api.OPENAI_CHAT if in_chat else _AT_ENGINES[inbound.api]
    path, query = inbound.path, inbound.query
    if api is not inbound.api:
        path, query = TOKENIZE if is_count(path) else path_to(api, inbound.api, "", streaming=False), ""
    target = _with_query(join_path(endpoint.path_prefix, path), query)
    leg = Leg(destination.address, endpoint.origin, target, fields, api)
    leg.may_lack, leg.extends_chat = api in _NOT_EVERYWHERE, endpoint.extends_chat
    return leg


def _provider_leg(destination: ProviderTarget, backend: BackendRoute, inbound: Inbound) -> Leg | None:
    base = urlsplit(backend.base_url)
    path, query = inbound.path, inbound.query
    if destination.path:
        path, _, query = destination.path.partition("?")
    if ".." in unquote(path).split("/"):
        return None
    is_anthropic = backend.api.shape is Api.ANTHROPIC_MESSAGES
    received = inbound.headers if is_anthropic else headers.without_anthropic(inbound.headers)
    if backend.api is Api.VERTEX_ANTHROPIC:
        received = headers.without_betas(received)
    fields = (*headers.to_provider(received, inbound.request_id), *_credential(backend, inbound.headers))
    target = _with_query(join_path(base.path, path), query)
    api = inbound.api if backend.api.speaks(inbound.api) else backend.api
    leg = Leg(str(backend.ref), f"{base.scheme}://{base.netloc}", target, fields, api)
    leg.is_provider, leg.aws = True, backend.aws
    leg.secret = backend.api_key if backend.aws is None else backend.aws.session_token
    return leg


def _credential(backend: BackendRoute, received: Headers) -> Headers:
    key = backend.api_key.encode()
    if not key:
        return ()
    if (name := _KEY_FIELDS.get(backend.api)) is not None:
        return ((name, key),)
    if backend.api is not Api.ANTHROPIC_MESSAGES:
        return ((b"authorization", b"Bearer " + key),)
    if header(received, b"anthropic-version") is not None:
        return ((b"x-api-key", key),)
    return ((b"x-api-key", key), (b"anthropic-version", ANTHROPIC_VERSION))


def join_path(prefix: str, path: str) -> str:
    """Put a path after a base URL's own, with one slash between and one version: bases end in `/v1` as often as not."""
    if not prefix and path.startswith("/") and not path.startswith("//"):
        return path
    base = prefix.rstrip("/")
    rest = path.lstrip("/")
    first, _, after = rest.partition("/")
    if _VERSION.fullmatch(base.rpartition("/")[2]) and _VERSION.fullmatch(first):
        rest = after
    return f"{base}/{rest}"


def _with_query(path: str, query: str) -> str:
    return f"{path}?{query}" if query else path

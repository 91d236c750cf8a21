"""From a provider's record and a model to all that a call needs, at the moment of asking."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from kinference.control.catalogue import Provider
from kinference.control.errors import StoreFailed, Unmet
from kinference.control.provider_types import TYPES, Auth, Family, ProviderType, type_named
from kinference.control.store.sealing import Sealed
from kinference.control.vertex import check_path_model, first, vertex_route
from kinference.errors import InvalidArgument, KinferenceError
from kinference.shapes.hosts import region_of
from kinference.wire.sigv4 import AwsKeys

AWS_REGION_KEYS = ("AWS_REGION", "AWS_DEFAULT_REGION")
AWS_ACCESS_KEY, AWS_SECRET_KEY = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"
AWS_TOKEN, AWS_BEARER_KEY = "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"

Reveal = Callable[[Sealed | str, str], str]
"""A stored credential and its place to the secret itself. Raises StoreFailed, or Unmet for a reference to nothing."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """An endpoint with its credential, ready to be called."""

    base_url: str
    protocols: tuple[str, ...]
    api_key: str = field(repr=False)
    model_id: str
    provider_type: str
    auth: Auth
    default_headers: tuple[tuple[str, str], ...] = ()
    model_in_path: bool = False
    path_override: str | None = None


def resolve(provider: Provider, model_id: str, reveal: Reveal) -> Resolved:
    """Resolve a record for one model. Raises InvalidArgument, Unmet or StoreFailed."""
    kind = inference_type(provider)
    if kind.family is Family.BEDROCK:
        check_path_model(model_id)
    base_url = first(provider.config, kind.base_url_keys).strip() or kind.base_url
    resolved = Resolved(
        base_url=base_url,
        protocols=kind.protocols,
        api_key=_credential(provider, kind, reveal),
        model_id=model_id,
        provider_type=kind.told_as or kind.name,
        auth=kind.auth,
        default_headers=kind.default_headers,
        path_override=kind.path_override,
    )
    if kind.family is Family.VERTEX:
        return _on_vertex(resolved, provider.config)
    if not base_url:
        raise InvalidArgument(
            f"provider '{provider.name}' resolved to an empty base_url; set {kind.base_url_keys[0]} in its config"
        )
    return resolved


def inference_type(provider: Provider) -> ProviderType:
    """Raises InvalidArgument for a type that cannot serve inference."""
    kind = type_named(provider.type)
    if kind is None:
        known = ", ".join(each.name for each in TYPES)
        raise InvalidArgument(
            f"provider '{provider.name}' has unsupported type '{provider.type}' for inference (supported: {known})"
        )
    return kind


def place_of(provider_name: str, key: str) -> str:
    """What a credential is sealed for."""
    return f"provider {provider_name} credential {key}"


def _credential(provider: Provider, kind: ProviderType, reveal: Reveal) -> str:
    """The first preferred key that has a value, else the first of all in the alphabet, where the type allows it."""
    others = sorted(set(provider.credentials) - set(kind.credential_keys)) if kind.any_credential else []
    trouble: KinferenceError | None = None
    for key in (*kind.credential_keys, *others):
        if key not in provider.credentials:
            continue
        try:
            secret = _revealed(provider, key, reveal)
        except (InvalidArgument, StoreFailed, Unmet) as error:
            trouble = trouble or error
            continue
        if secret.strip():
            return secret
    if trouble is not None:
        raise trouble
    if kind.needs_credential:
        wanted = f"; set {kind.credential_keys[0]}" if kind.credential_keys else ""
        raise InvalidArgument(f"provider '{provider.name}' has no usable API key credential{wanted}")
    return ""


def _revealed(provider: Provider, key: str, reveal: Reveal) -> str:
    """A credential that can be sent: what a reference leads to was never looked at before."""
    place = place_of(provider.name, key)
    secret = reveal(provider.credentials[key], place)
    if re.fullmatch(r"[ -~]*", secret.strip()) is None:
        raise InvalidArgument(f"{place} holds characters that no HTTP header may")
    return secret


@dataclass(frozen=True, slots=True)
class AwsRecord:
    """What a record tells of Amazon Bedrock beside a URL: a bearer token, or keys to sign with; and the region."""

    base_url: str
    bearer: str = field(default="", repr=False)
    keys: AwsKeys | None = None


def resolve_aws(provider: Provider, reveal: Reveal) -> AwsRecord:
    """A record of Bedrock for callers of Converse. Raises InvalidArgument, Unmet or StoreFailed."""
    kind = inference_type(provider)
    if kind.family is not Family.BEDROCK:
        raise InvalidArgument(f"provider '{provider.name}' is of type {kind.name}; bedrock_converse needs aws-bedrock")
    region = first(provider.config, AWS_REGION_KEYS).strip()
    if region and re.fullmatch(r"[a-z0-9-]+", region) is None:
        raise InvalidArgument(f"provider '{provider.name}' names a region that is none; write one like us-east-1")
    base_url = first(provider.config, kind.base_url_keys).strip()
    if not base_url and not region:
        wanted = f"{kind.base_url_keys[0]} or {AWS_REGION_KEYS[0]}"
        raise InvalidArgument(f"provider '{provider.name}' names no place; set {wanted} in its config")
    base_url = base_url or f"https://bedrock-runtime.{region}.amazonaws.com"

    def secret(key: str) -> str:
        return _revealed(provider, key, reveal).strip() if key in provider.credentials else ""

    if bearer := secret(AWS_BEARER_KEY):
        return AwsRecord(base_url, bearer)
    access, key = secret(AWS_ACCESS_KEY), secret(AWS_SECRET_KEY)
    if not access or not key:
        wanted = f"{AWS_ACCESS_KEY} and {AWS_SECRET_KEY}, or {AWS_BEARER_KEY}"
        raise InvalidArgument(f"provider '{provider.name}' has no usable credential; set {wanted}")
    if not region and not region_of(urlsplit(base_url).hostname or ""):
        raise InvalidArgument(f"provider '{provider.name}' names no region; set {AWS_REGION_KEYS[0]} in its config")
    return AwsRecord(base_url, keys=AwsKeys(access, key, secret(AWS_TOKEN), region))


def _on_vertex(resolved: Resolved, config: Mapping[str, str]) -> Resolved:
    route = vertex_route(config, resolved.base_url, resolved.model_id)
    is_anthropic = route.model_in_path
    return replace(
        resolved,
        base_url=route.base_url,
        protocols=(route.protocol,),
        model_id=route.model_id,
        model_in_path=is_anthropic,
        path_override=route.path_override,
    )

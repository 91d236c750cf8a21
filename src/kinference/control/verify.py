"""Tries an endpoint before a route may lead there."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from kinference.control.errors import Unmet
from kinference.control.probes import OLDER_CHAT, PROBES, Probe, Verdict, judge, payload, told, wants_older_budget
from kinference.control.provider_types import Auth
from kinference.control.providers import Resolved
from kinference.control.urls import route_url
from kinference.errors import UpstreamCut, UpstreamTimeout, UpstreamUnreachable
from kinference.ids import Seconds
from kinference.ports import Headers, Upstream, UpstreamRequest, UpstreamTimeouts
from kinference.wire.patience import Patience

PATIENCE: Seconds = 30.0
"""Of one probe."""
PATIENCE_IN_ALL: Seconds = 50.0
"""Of all of them: whoever asked waits for a minute, and is to know what came of it."""
ANSWER_BYTES_MAX = 64 * 1024
MOCK_SCHEME = "mock://"


@dataclass(frozen=True, slots=True)
class ValidatedEndpoint:
    """What was tried and answered."""

    url: str
    protocol: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One probe's end."""

    verdict: Verdict
    detail: str
    body: bytes = b""


class Verifier:
    """Sends probes over an upstream that itself refuses addresses which must not be reached."""

    def __init__(self, upstream: Upstream, patience: Seconds = PATIENCE, in_all: Seconds = PATIENCE_IN_ALL) -> None:
        self._upstream, self._patience, self._in_all = upstream, patience, in_all

    async def verify(self, provider: str, resolved: Resolved) -> ValidatedEndpoint:
        """The first endpoint that answers well. Raises Unmet with what was wrong and what to do."""
        try:
            async with asyncio.timeout(self._in_all):
                return await self._tried(provider, resolved)
        except TimeoutError:
            slow = Attempt(Verdict.CONNECTIVITY, f"its answers took over {self._in_all:g} s together")
            raise _refusal(provider, resolved, slow) from None

    async def _tried(self, provider: str, resolved: Resolved) -> ValidatedEndpoint:
        first_refusal: Attempt | None = None
        for probe in _probes_of(resolved.protocols):
            url = _url(probe, resolved)
            if resolved.base_url.startswith(MOCK_SCHEME):
                return ValidatedEndpoint(url, probe.protocol)
            attempt = await self._attempt(probe, url, resolved)
            if attempt.verdict is Verdict.OK:
                return ValidatedEndpoint(url, probe.protocol)
            if attempt.verdict is not Verdict.REQUEST_SHAPE:
                raise _refusal(provider, resolved, attempt)
            first_refusal = first_refusal or attempt
        nothing = Attempt(Verdict.REQUEST_SHAPE, "none of its protocols can be tried")
        raise _refusal(provider, resolved, first_refusal or nothing)

    async def _attempt(self, probe: Probe, url: str, resolved: Resolved) -> Attempt:
        attempt = await self._send(probe, url, resolved)
        if attempt.verdict is Verdict.REQUEST_SHAPE and wants_older_budget(probe, attempt.body):
            return await self._send(OLDER_CHAT, url, resolved)
        return attempt

    async def _send(self, probe: Probe, url: str, resolved: Resolved) -> Attempt:
        try:
            request = _request(probe, url, resolved, self._patience)
            async with Patience(self._patience):
                answer = await self._upstream.send(request)
                try:
                    body = await _bounded(answer.chunks())
                finally:
                    await answer.close()
        except (UpstreamUnreachable, UpstreamTimeout) as error:
            return Attempt(Verdict.CONNECTIVITY, str(error))
        except TimeoutError:
            return Attempt(Verdict.CONNECTIVITY, f"no answer within {self._patience:g} s")
        except UpstreamCut as error:
            return Attempt(Verdict.UNEXPECTED, str(error))
        except ValueError:
            return Attempt(Verdict.UNEXPECTED, "its base URL is not an http or https URL without credentials")
        return Attempt(judge(answer.status, body), told(answer.status, body, resolved.api_key), body)


def _probes_of(protocols: Sequence[str]) -> Iterator[Probe]:
    return (probe for probe in PROBES if probe.protocol in protocols)


def _url(probe: Probe, resolved: Resolved) -> str:
    in_path = resolved.model_id if resolved.model_in_path else None
    return route_url(resolved.base_url, probe.path, in_path, resolved.path_override)


def _request(probe: Probe, url: str, resolved: Resolved, patience: Seconds) -> UpstreamRequest:
    """Raises ValueError for a URL that cannot be called."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ValueError(parts.scheme)
    model = None if resolved.model_in_path else resolved.model_id
    return UpstreamRequest(
        "POST",
        f"{parts.scheme}://{parts.netloc}",
        f"{parts.path}?{parts.query}" if parts.query else parts.path,
        _headers(resolved),
        (payload(probe, model),),
        UpstreamTimeouts(connect=min(patience, 10.0), first_byte=patience, between_chunks=patience),
    )


def _headers(resolved: Resolved) -> Headers:
    fields = [(b"content-type", b"application/json"), (b"accept", b"application/json"), (b"user-agent", b"kinference")]
    key = resolved.api_key.strip().encode()
    if resolved.auth is Auth.BEARER and key:
        fields.append((b"authorization", b"Bearer " + key))
    elif resolved.auth is Auth.API_KEY_HEADER:
        fields.append((b"x-api-key", key))
    return (*fields, *((name.encode(), value.encode()) for name, value in resolved.default_headers))


async def _bounded(chunks: AsyncIterator[bytes]) -> bytes:
    """The beginning of an answer: an error is short, and nothing else is looked at."""
    body = b""
    async for chunk in chunks:
        body += chunk
        if len(body) >= ANSWER_BYTES_MAX:
            break
    return body[:ANSWER_BYTES_MAX]


def _refusal(provider: str, resolved: Resolved, attempt: Attempt) -> Unmet:
    return Unmet(
        f"failed to verify inference endpoint for provider '{provider}' and model '{resolved.model_id}' at "
        f"'{_without_user(resolved.base_url)}': {attempt.detail}; {attempt.verdict.value}, or pass --no-verify to "
        "store the route without trying it"
    )


def _without_user(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    netloc, slash, path = rest.partition("/")
    return f"{scheme}{separator}{netloc.rpartition('@')[2]}{slash}{path.partition('?')[0]}"

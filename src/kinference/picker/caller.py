"""The contract from its caller's side: our values to its messages and metadata, and its answers back."""

import re
from collections.abc import Iterable
from typing import TypeAlias

from kinference.ids import Address, ObjectRef, ResponseId, StreamId
from kinference.picker import convert
from kinference.ports import (
    Allowance,
    FinalTokenReport,
    FirstTokenReport,
    LocalTarget,
    PickArguments,
    PickResult,
    ProviderTarget,
    PushedBody,
    PushMetadata,
)
from kinference.vocabulary import AbortReason, Outcome
from kinference.wire.proto import picker_pb2 as pb

Fields: TypeAlias = tuple[tuple[str, str], ...]
"""Call metadata."""

UINT32_MAX = 2**32 - 1
_RETRY_HINT = re.compile(r"try again in (\d{1,9}(?:\.\d{1,3})?) s$")
"""How a refusal's reason says when it may be over: the message has no field for that."""


_LEFT = re.compile(r"([0-9]{1,18}) ([0-9]{1,18}) ([0-9]{1,9}\.[0-9]{1,3})")
"""A limit, what is left of it, and in how many seconds all of it is."""


def push_fields(metadata: PushMetadata) -> Fields:
    fields = [(convert.CLIENT_REQUEST_ID, metadata.client_request_id)] if metadata.client_request_id else []
    if metadata.declared_length is not None:
        fields.append((convert.DECLARED_LENGTH, str(metadata.declared_length)))
    return tuple(fields)


def pushed_body(reply: pb.PushBodyResponse) -> PushedBody:
    return PushedBody(StreamId(reply.stream_id), reply.total_bytes)


def pick_request(arguments: PickArguments) -> tuple[pb.PickRequest, Fields]:
    """The message, and what travels beside it."""
    pool = arguments.pool
    request = pb.PickRequest(
        body_stream_id=arguments.stream_id,
        client_request_id=arguments.client_request_id,
        inference_pool=None
        if pool is None
        else pb.InferencePoolRef(
            namespace=pool.namespace, name=pool.name, resource_version=arguments.pool_resource_version
        ),
        qos_class=arguments.qos.value,  # type: ignore[arg-type] # the stubs type an enum's numbers by their own names
        tenant=arguments.tenant,
    )
    fields = [(convert.LOSS, arguments.loss.value)]
    if arguments.request_path:
        fields.append((convert.REQUEST_PATH, arguments.request_path))
    if arguments.translates:
        fields.append((convert.TRANSLATES, "1"))
    if arguments.failed:
        fields.append((convert.ATTEMPTS_LEFT, str(arguments.attempts_left)))
    fields.extend((convert.FAILED, text) for text in sorted(map(convert.spelled, arguments.failed)))
    return request, tuple(fields)


def pick_result(response: pb.PickResponse, fields: Iterable[tuple[str, str | bytes]] = ()) -> PickResult:
    """The answer, and of what travelled beside it what makes sense."""
    told = dict(fields)
    return PickResult(
        outcome=Outcome(response.outcome),
        reason=response.reason,
        requested_model=response.requested_model,
        destination=_destination(response),
        response_id=ResponseId(response.response_id),
        body_total_bytes=response.body_total_bytes,
        retry_after=None if (hint := _RETRY_HINT.search(response.reason)) is None else float(hint[1]),
        requests=_allowance(told.get(convert.LEFT_REQUESTS)),
        tokens=_allowance(told.get(convert.LEFT_TOKENS)),
    )


def _allowance(text: str | bytes | None) -> Allowance | None:
    left = _LEFT.fullmatch(text) if isinstance(text, str) else None
    return None if left is None else Allowance(int(left[1]), int(left[2]), float(left[3]))


def _destination(response: pb.PickResponse) -> LocalTarget | ProviderTarget | None:
    match response.WhichOneof("destination"):
        case "local":
            return LocalTarget(Address(response.local.endpoint))
        case "provider":
            backend = response.provider.backend_ref
            return ProviderTarget(ObjectRef(backend.namespace, backend.name), response.provider.path)
        case _:
            return None


def first_token_request(report: FirstTokenReport) -> pb.ReportFirstTokenRequest:
    return pb.ReportFirstTokenRequest(
        response_id=report.response_id,
        observed_ttft_ms=min(report.observed_ttft_ms, UINT32_MAX),
        upstream_status=report.upstream_status,
    )


def final_token_request(report: FinalTokenReport) -> tuple[pb.ReportFinalTokenRequest, Fields]:
    request = pb.ReportFinalTokenRequest(
        response_id=report.response_id,
        model=convert.encodable(report.model),
        prompt_tokens=min(report.prompt_tokens, UINT32_MAX),
        completion_tokens=min(report.completion_tokens, UINT32_MAX),
        cached_tokens=None if report.cached_tokens is None else min(report.cached_tokens, UINT32_MAX),
        itl_bucket_counts=report.itl_bucket_counts,
        itl_bucket_layout=report.itl_bucket_layout,
    )
    return request, ((convert.BROKEN, "1"),) if report.broken else ()


def abort_request(response_id: ResponseId, reason: AbortReason, detail: str, client_request_id: str) -> pb.AbortRequest:
    return pb.AbortRequest(
        response_id=response_id,
        reason=reason.value,  # type: ignore[arg-type] # as above
        detail=convert.encodable(detail),
        client_request_id=client_request_id,
    )

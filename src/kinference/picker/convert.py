"""Between the contract's messages and our values, and between our failures and gRPC status."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias, TypeVar
from urllib.parse import quote, unquote

from google.protobuf.message import DecodeError, Message

from kinference.errors import (
    BodyConsumed,
    BudgetExceeded,
    ClientGone,
    Draining,
    IdleTimeout,
    InvalidArgument,
    KinferenceError,
    RetryLater,
    UnknownId,
)
from kinference.ids import Address, ObjectRef, ResponseId, StreamId
from kinference.ports import (
    FinalTokenReport,
    FirstTokenReport,
    LocalTarget,
    PickArguments,
    PickResult,
    ProviderTarget,
    PushedBody,
)
from kinference.vocabulary import AbortReason, Loss, QosClass
from kinference.wire.access import Denied, Unauthenticated
from kinference.wire.proto import picker_pb2 as pb
from kinference.wire.rpc import Status

STATUS: Final[Mapping[type[KinferenceError], Status]] = {
    InvalidArgument: Status.INVALID_ARGUMENT,
    UnknownId: Status.NOT_FOUND,
    BodyConsumed: Status.FAILED_PRECONDITION,
    BudgetExceeded: Status.RESOURCE_EXHAUSTED,
    IdleTimeout: Status.DEADLINE_EXCEEDED,
    Draining: Status.UNAVAILABLE,
    ClientGone: Status.CANCELLED,
    RetryLater: Status.RESOURCE_EXHAUSTED,
    Unauthenticated: Status.UNAUTHENTICATED,
    Denied: Status.PERMISSION_DENIED,
}
"""Every failure that the picker can raise."""

CLIENT_REQUEST_ID: Final = "kinference-client-request-id"
DECLARED_LENGTH: Final = "kinference-declared-length"
REQUEST_PATH: Final = "kinference-request-path"
TRANSLATES: Final = "kinference-translates"
LOSS: Final = "kinference-loss"
FAILED: Final = "kinference-failed"
ATTEMPTS_LEFT: Final = "kinference-attempts-left"
BROKEN: Final = "kinference-broken"
SAYS_BROKEN: Final[tuple[str, ...]] = (BROKEN, "1")
LEFT_REQUESTS: Final = "kinference-left-requests"
LEFT_TOKENS: Final = "kinference-left-tokens"
"""Of an answer: what is left of its tenant's limits for a minute, which the message has no fields for."""

CLIENT_REQUEST_ID_MAX_CHARS: Final = 256
DETAIL_MAX_CHARS: Final = 512
ATTEMPTS_DIGITS: Final = 3
REQUEST_PATH_MAX_CHARS: Final = 2048
DECLARED_LENGTH_MAX: Final = 2**64 - 1
DECLARED_LENGTH_MAX_DIGITS: Final = 20
MODEL_MAX_CHARS: Final = 256
FAILED_MAX: Final = 16
"""Destinations that one Pick may name as tried in vain."""
NOWHERE: Final[frozenset[LocalTarget | ProviderTarget]] = frozenset()
"""One for all: each that is made empty is an object of its own, of 216 bytes."""

_DESTINATIONS_MAX: Final = 1024
"""Encoded ones that are remembered."""

CHUNK_TAG: Final = pb.BodyChunk.CHUNK_FIELD_NUMBER << 3 | 2
MORE: Final = 0x80
"""Set in every byte of a number but the last, which hold seven bits of it each."""
ONE_BYTE: Final = 0x7F
TWO_BYTES: Final = 0x3FFF
THREE_BYTES: Final = 0x1F_FFFF
"""The largest numbers that take so many."""
CHUNK_SHORT: Final = 2 + ONE_BYTE
CHUNK_MIDDLE: Final = 3 + TWO_BYTES
"""The longest messages whose length takes one byte, and two."""

OURS: Final = "kinference-"
"""What every key begins with that we read of a call's metadata."""
LOSS_DEFAULT: Final = Loss.WARN

_LOSSES: Final = {loss.value: loss for loss in Loss}
_QOS_CLASSES: Final[dict[int, QosClass]] = {qos.value: qos for qos in QosClass}
_ABORT_REASONS: Final[dict[int, AbortReason]] = {reason.value: reason for reason in AbortReason}
"""By number. One that the contract does not name yet counts as its 0."""

Metadata: TypeAlias = Sequence[tuple[str, str | bytes]]
MessageType = TypeVar("MessageType", bound=Message)


def decode(kind: type[MessageType], message: bytes | None) -> MessageType:
    """A message of the contract; unknown fields are skipped."""
    if message is None:
        raise InvalidArgument(f"the call ended without a {kind.DESCRIPTOR.name}")
    try:
        return kind.FromString(message)
    except DecodeError as error:
        raise InvalidArgument(f"the message is not a {kind.DESCRIPTOR.name}") from error


# --- chunks: a message object costs twice as much as to know what one of a single field begins with --------


def body_chunk(piece: bytes) -> bytes:
    """A BodyChunk of these bytes."""
    return _chunk_start(len(piece)) + piece


def chunk(message: bytes) -> bytes:
    """The bytes that a BodyChunk carries."""
    length = len(message)
    size = length - (2 if length <= CHUNK_SHORT else 3 if length <= CHUNK_MIDDLE else 4)
    start = _chunk_start(size) if size > 0 else b""
    if message.startswith(start) and len(start) + size == length:
        return message[len(start) :]
    return decode(pb.BodyChunk, message).chunk


def _chunk_start(size: int) -> bytes:
    """The tag of the field, and how long it is."""
    if size <= ONE_BYTE:
        return bytes((CHUNK_TAG, size))
    if size <= TWO_BYTES:
        return bytes((CHUNK_TAG, size & ONE_BYTE | MORE, size >> 7))
    if size <= THREE_BYTES:
        return bytes((CHUNK_TAG, size & ONE_BYTE | MORE, size >> 7 & ONE_BYTE | MORE, size >> 14))
    start = bytearray((CHUNK_TAG,))
    while size >= MORE:
        start.append(size & (MORE - 1) | MORE)
        size >>= 7
    start.append(size)
    return bytes(start)


# --- what callers send --------------------------------------------------------------------------


def pick_arguments(message: bytes | None, metadata: Metadata, name_max_chars: int) -> PickArguments:
    request = decode(pb.PickRequest, message)
    tenant, pool, version, named_by = request.tenant, None, "", request.client_request_id
    if tenant:
        _check_length("tenant", tenant, name_max_chars)
    if request.HasField("inference_pool"):
        named = request.inference_pool
        _check_length("inference_pool", named.namespace + named.name, name_max_chars)
        pool = ObjectRef(named.namespace, named.name) if named.name else None
        version = _visible(named.resource_version)
    ours = _ours(metadata)
    return PickArguments(
        stream_id=StreamId(request.body_stream_id),
        tenant=tenant,
        client_request_id=_visible(named_by) if named_by else "",
        pool=pool,
        pool_resource_version=version,
        qos=_QOS_CLASSES.get(request.qos_class, QosClass.INTERACTIVE),
        request_path=_path(ours[REQUEST_PATH]) if REQUEST_PATH in ours else "",
        translates=TRANSLATES in ours and ours[TRANSLATES].lower() in ("1", "true"),
        loss=_LOSSES.get(ours[LOSS].lower(), LOSS_DEFAULT) if LOSS in ours else LOSS_DEFAULT,
        failed=_failed(metadata) if FAILED in ours else NOWHERE,
        attempts_left=_attempts_left(ours[ATTEMPTS_LEFT]) if ATTEMPTS_LEFT in ours else 1,
    )


def first_token_report(message: bytes | None) -> FirstTokenReport:
    request = decode(pb.ReportFirstTokenRequest, message)
    return FirstTokenReport(ResponseId(request.response_id), request.observed_ttft_ms, request.upstream_status)


def final_token_report(message: bytes | None, metadata: Metadata = ()) -> FinalTokenReport:
    request = decode(pb.ReportFinalTokenRequest, message)
    gaps = request.itl_bucket_counts
    return FinalTokenReport(
        response_id=ResponseId(request.response_id),
        model=request.model[:MODEL_MAX_CHARS],
        prompt_tokens=request.prompt_tokens,
        completion_tokens=request.completion_tokens,
        cached_tokens=request.cached_tokens if request.HasField("cached_tokens") else None,
        itl_bucket_counts=tuple(gaps) if gaps else (),
        itl_bucket_layout=request.itl_bucket_layout,
        broken=SAYS_BROKEN in metadata and _ours(metadata)[BROKEN] == "1",
    )


def abort_arguments(message: bytes | None) -> tuple[ResponseId, AbortReason, str]:
    """The id, the reason, and the detail as far as the log keeps it."""
    request = decode(pb.AbortRequest, message)
    return (
        ResponseId(request.response_id),
        _ABORT_REASONS.get(request.reason, AbortReason.UNSPECIFIED),
        request.detail[:DETAIL_MAX_CHARS],
    )


# --- what we answer -----------------------------------------------------------------------------


def push_response(pushed: PushedBody) -> bytes:
    return pb.PushBodyResponse(stream_id=pushed.stream_id, total_bytes=pushed.total_bytes).SerializeToString()


def pick_response(result: PickResult) -> bytes:
    response = pb.PickResponse(
        outcome=result.outcome,  # type: ignore[arg-type] # the stubs type an enum's numbers by their own names
        response_id=result.response_id,
        reason=encodable(result.reason),
        body_total_bytes=result.body_total_bytes,
        requested_model=encodable(result.requested_model),
    )
    target = result.destination
    return response.SerializeToString() if target is None else response.SerializeToString() + _destination_field(target)


@lru_cache(_DESTINATIONS_MAX)
def _destination_field(target: LocalTarget | ProviderTarget) -> bytes:
    """A destination as a field of a PickResponse: its bytes may stand anywhere among those of the others."""
    response = pb.PickResponse()
    if isinstance(target, LocalTarget):
        response.local.endpoint = target.address
    else:
        response.provider.backend_ref.namespace = target.backend.namespace
        response.provider.backend_ref.name = target.backend.name
        response.provider.path = target.path
    return response.SerializeToString()


def pick_fields(result: PickResult) -> Sequence[tuple[str, str]]:
    """What travels beside the answer."""
    if result.requests is None and result.tokens is None:
        return ()
    lefts = ((LEFT_REQUESTS, result.requests), (LEFT_TOKENS, result.tokens))
    return [
        (name, f"{left.limit} {max(left.remaining, 0)} {max(0.0, left.full_in):.3f}")
        for name, left in lefts
        if left is not None
    ]


def _check_length(what: str, name: str, chars_max: int) -> None:
    if len(name) > chars_max:
        raise InvalidArgument(f"{what} is longer than {chars_max} characters")


# --- metadata -----------------------------------------------------------------------------------


def declared_length(metadata: Metadata) -> int | None:
    """Of a pushed body, where its caller tells it."""
    declared: int | None = None
    for key, value in metadata:
        if key == DECLARED_LENGTH:
            length = _length(value)
            if declared is not None and length != declared:
                raise InvalidArgument(f"{DECLARED_LENGTH} was given twice with different values")
            declared = length
    return declared


def _length(value: str | bytes) -> int:
    digits = value if isinstance(value, str) else ""
    if digits.isascii() and digits.isdigit() and len(digits) <= DECLARED_LENGTH_MAX_DIGITS:
        length = int(digits)
        if length <= DECLARED_LENGTH_MAX:
            return length
    raise InvalidArgument(f"{DECLARED_LENGTH} is not a decimal number from 0 to {DECLARED_LENGTH_MAX}")


def spelled(destination: LocalTarget | ProviderTarget) -> str:
    """A destination as metadata may carry it: a backend has a slash in its name, an address has none."""
    if isinstance(destination, LocalTarget):
        return quote(destination.address, safe=":[]")
    return f"{quote(destination.backend.namespace, safe='')}/{quote(destination.backend.name, safe='')}"


def _path(text: str) -> str:
    """An HTTP path as the client's request has it, without its query; "" for what is none."""
    path = text.partition("?")[0]
    return path if path.startswith("/") and len(path) <= REQUEST_PATH_MAX_CHARS else ""


def _attempts_left(text: str) -> int:
    """1 unless a small number is said: whoever does not say may not come again."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= ATTEMPTS_DIGITS else 1


def _failed(metadata: Metadata) -> frozenset[LocalTarget | ProviderTarget]:
    named = [value for key, value in metadata if key == FAILED and isinstance(value, str)]
    return frozenset(_destination(value) for value in named[:FAILED_MAX])


def _destination(text: str) -> LocalTarget | ProviderTarget:
    namespace, slash, name = text.partition("/")
    if not slash:
        return LocalTarget(Address(unquote(text)))
    return ProviderTarget(ObjectRef(unquote(namespace), unquote(name)))


def _ours(metadata: Metadata) -> dict[str, str]:
    """The first text value of each key that we read."""
    ours: dict[str, str] = {}
    for key, value in metadata:
        if key.startswith(OURS) and key not in ours and isinstance(value, str):
            ours[key] = value
    return ours


def _visible(text: str) -> str:
    """What a log may show of a caller's word."""
    if text.isascii() and text.isprintable() and " " not in text:
        return text[:CLIENT_REQUEST_ID_MAX_CHARS]
    return "".join(character for character in text[:4096] if "!" <= character <= "~")[:CLIENT_REQUEST_ID_MAX_CHARS]


def encodable(text: str) -> str:
    """Lone surrogates, which JSON can spell and UTF-8 cannot, become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()

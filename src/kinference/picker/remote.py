"""The calls of the contract over gRPC, to the picker of another process."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from kinference.errors import (
    BodyConsumed,
    IdleTimeout,
    InvalidArgument,
    KinferenceError,
    PickerUnreachable,
    RetryLater,
    UnknownId,
)
from kinference.ids import ResponseId
from kinference.picker import caller
from kinference.picker.convert import decode
from kinference.picker.service import SERVICE
from kinference.ports import FinalTokenReport, FirstTokenReport, PickArguments, PickResult, PushedBody, PushMetadata
from kinference.vocabulary import AbortReason
from kinference.wire.pieces import cut
from kinference.wire.proto import picker_pb2 as pb

FAILURES: dict[grpc.StatusCode, type[KinferenceError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgument,
    grpc.StatusCode.NOT_FOUND: UnknownId,
    grpc.StatusCode.FAILED_PRECONDITION: BodyConsumed,
    grpc.StatusCode.DEADLINE_EXCEEDED: IdleTimeout,
    grpc.StatusCode.RESOURCE_EXHAUSTED: RetryLater,  # one body's own budget is kept before it is pushed
}
"""What the picker itself can say; any other status says that it could not be asked. A refusal in the middle of a push
may be among those: the library drops its status when it is writing at that moment."""

_UNARY = ("Pick", "ReportFirstToken", "ReportFinalToken", "Abort")

_log = logging.getLogger(__name__)

Answer = TypeVar("Answer", bound=Message)


class RemotePicker:
    """One channel to one picker: the contract wants every call of a request at the same instance."""

    def __init__(
        self, channel: grpc.aio.Channel, token: Callable[[], str] = str, chunk_max_bytes: int = 1024 * 1024
    ) -> None:
        """`token` is asked before each call, since it may have been replaced; `str` gives none."""
        self._chunk_max_bytes, self._token = chunk_max_bytes, token
        self.use(channel)

    def use(self, channel: grpc.aio.Channel) -> None:
        """From now on call over this one; calls that have begun go on over theirs."""
        self._channel = channel
        self._push = channel.stream_unary(
            f"/{SERVICE}/PushBody",
            request_serializer=pb.BodyChunk.SerializeToString,
            response_deserializer=pb.PushBodyResponse.FromString,
        )
        self._pull = channel.unary_stream(
            f"/{SERVICE}/PullBody",
            request_serializer=pb.PullBodyRequest.SerializeToString,
            response_deserializer=pb.BodyChunk.FromString,
        )
        self._unary: dict[str, grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]] = {
            name: channel.unary_unary(f"/{SERVICE}/{name}") for name in _UNARY
        }

    @property
    def is_connected(self) -> bool:
        """Whether the picker could be asked now; asking makes an idle channel connect."""
        return self._channel.get_state(try_to_connect=True) is grpc.ChannelConnectivity.READY

    @property
    def _credential(self) -> caller.Fields:
        token = self._token()
        return (("authorization", f"Bearer {token}"),) if token else ()

    async def push_body(self, chunks: AsyncIterator[bytes], metadata: PushMetadata) -> PushedBody:
        """Whatever ends it before the last chunk resets the call, so that no part of a body is ever picked on."""
        call = self._push(metadata=(*caller.push_fields(metadata), *self._credential))
        try:
            async for chunk in chunks:
                for piece in cut(chunk, self._chunk_max_bytes):
                    await call.write(pb.BodyChunk(chunk=piece))
            await call.done_writing()
            reply = await call
        except grpc.aio.AioRpcError as error:
            raise failure_of(error) from None
        except asyncio.InvalidStateError:
            raise await _ended(call) from None
        finally:
            call.cancel()
        return caller.pushed_body(reply)

    async def pick(self, arguments: PickArguments) -> PickResult:
        request, fields = caller.pick_request(arguments)
        call = self._unary["Pick"](request.SerializeToString(), metadata=(*fields, *self._credential))
        try:
            told = await call
            beside = (*(await call.initial_metadata()), *(await call.trailing_metadata()))
        except grpc.aio.AioRpcError as error:
            raise failure_of(error) from None
        return caller.pick_result(decode(pb.PickResponse, told), beside)

    async def pull_body(self, response_id: ResponseId) -> AsyncIterator[bytes]:
        call = self._pull(pb.PullBodyRequest(response_id=response_id), metadata=self._credential)
        try:
            async for message in call:
                yield message.chunk
        except grpc.aio.AioRpcError as error:
            raise failure_of(error) from None
        finally:
            call.cancel()

    async def report_first_token(self, report: FirstTokenReport) -> bool:
        request = caller.first_token_request(report)
        return (await self._ask("ReportFirstToken", request, pb.ReportFirstTokenResponse)).acknowledged

    async def report_final_token(self, report: FinalTokenReport) -> bool:
        request, fields = caller.final_token_request(report)
        return (await self._ask("ReportFinalToken", request, pb.ReportFinalTokenResponse, fields)).acknowledged

    async def abort(
        self, response_id: ResponseId, reason: AbortReason, detail: str = "", client_request_id: str = ""
    ) -> bool:
        request = caller.abort_request(response_id, reason, detail, client_request_id)
        return (await self._ask("Abort", request, pb.AbortResponse)).released

    async def _ask(self, method: str, request: Message, answer: type[Answer], fields: caller.Fields = ()) -> Answer:
        try:
            told: bytes = await self._unary[method](request.SerializeToString(), metadata=(*fields, *self._credential))
        except grpc.aio.AioRpcError as error:
            raise failure_of(error) from None
        return decode(answer, told)


def failure_of(error: grpc.aio.AioRpcError) -> KinferenceError:
    """The failure behind a status. What could not be asked tells clients nothing of where it was looked for."""
    kind = FAILURES.get(error.code())
    if kind is not None:
        return kind(error.details() or error.code().name)
    _log.warning("the picker cannot be asked: %s: %s", error.code().name, (error.details() or "")[:200])
    return PickerUnreachable("the picker cannot be reached; try again")


async def _ended(call: grpc.aio.StreamUnaryCall[Any, Any]) -> KinferenceError:
    """Why a push ended that was still being written to."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return failure_of(error)
    return PickerUnreachable("the picker ended a push before it was complete")

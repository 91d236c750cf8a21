"""What every gRPC carrier does, over real sockets, called by a plain grpcio client."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from kinference.errors import ClientGone
from kinference.wire.grpc_server import GrpcServer
from kinference.wire.grpcio_server import GrpcioServer
from kinference.wire.proto.picker_pb2 import BodyChunk
from kinference.wire.rpc import Call, Left, RpcError, RpcHandler, RpcService, Status, replying

MIB = 1_048_576


@dataclass
class Served:
    server: GrpcServer | GrpcioServer
    port: int
    channel: grpc.aio.Channel

    def unary(self, method: str) -> grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]:
        return self.channel.unary_unary(f"/test.Service/{method}")

    def push(self, method: str) -> grpc.aio.StreamUnaryMultiCallable[bytes, bytes]:
        return self.channel.stream_unary(f"/test.Service/{method}")

    def pull(self, method: str) -> grpc.aio.UnaryStreamMultiCallable[bytes, bytes]:
        return self.channel.unary_stream(f"/test.Service/{method}")


class Serving(Protocol):
    def __call__(self, **methods: RpcHandler) -> AbstractAsyncContextManager[Served]: ...


@pytest.fixture(params=[GrpcServer, GrpcioServer], ids=["own", "grpcio"])
def serving(request: pytest.FixtureRequest) -> Serving:
    carrier: type[GrpcServer | GrpcioServer] = request.param

    @asynccontextmanager
    async def served(**methods: RpcHandler) -> AsyncIterator[Served]:
        server = carrier("127.0.0.1:0", [RpcService("test.Service", methods)])
        port = await server.start()
        options = [("grpc.max_receive_message_length", -1)]  # the client's own limit is of no interest here
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
            yield Served(server, port, channel)
        await server.drain(0)

    return served


async def collect(call: Call) -> list[bytes]:
    messages = []
    while (message := await call.receive()) is not None:
        messages.append(message)
    return messages


async def join(call: Call) -> None:
    await call.send(b"".join(await collect(call)))


async def refuse(_call: Call) -> None:
    raise RpcError(Status.NOT_FOUND, "no body 17")


async def break_down(_call: Call) -> None:
    raise ZeroDivisionError("a secret detail")


@dataclass
class Push:
    """A handler that commits what it received once its reply is written, as the picker does."""

    begun: int = 0
    committed: int = 0
    ended: int = 0

    async def __call__(self, call: Call) -> None:
        self.begun += 1
        try:
            await collect(call)
            await call.send(b"stored")
            self.committed += 1
        finally:
            self.ended += 1

    def has_begun(self, times: int) -> bool:
        return self.begun == times


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - what is waited for happens inside grpcio, which tells nobody
            await asyncio.sleep(0.001)


async def status_of(
    call: grpc.aio.UnaryUnaryCall[bytes, bytes] | grpc.aio.StreamUnaryCall[bytes, bytes],
) -> tuple[grpc.StatusCode, str]:
    return await call.code(), await call.details() or ""


async def test_a_unary_caller_gets_the_one_reply(serving: Serving) -> None:
    async with serving(Join=join) as served:
        assert await served.unary("Join")(b"hello") == b"hello"


async def test_a_stream_of_messages_arrives_in_order(serving: Serving) -> None:
    async with serving(Join=join) as served:
        messages = [b"one", b"", b"two", b"three"]
        assert await served.push("Join")(iter(messages)) == b"onetwothree"


async def test_a_handler_streams_messages_back(serving: Serving) -> None:
    async def count(call: Call) -> None:
        await call.receive()
        for number in range(3):
            await call.send(str(number).encode())

    async with serving(Count=count) as served:
        answers = [message async for message in served.pull("Count")(b"")]
        assert answers == [b"0", b"1", b"2"]


@pytest.mark.parametrize("size", [16_379, 16_380, 49_000, 65_530, 65_531, 300_000])
async def test_an_answer_of_any_size_that_is_there_at_once_arrives_whole(size: int) -> None:
    """A frame, a byte more, several, a window as it begins, and more than that, over and over on one connection."""
    body = bytes(number % 251 for number in range(size))
    at_once: list[bool] = []

    async def later(call: Call) -> None:
        await call.send(body)

    def fetch(_message: bytes | None, call: Call) -> bytes | Left:
        at_once.append(call.takes(body))
        return body if at_once[-1] else later(call)

    service = RpcService("test.Service", {"Fetch": replying(fetch)}, inline=True, replies={"Fetch": fetch})
    server = GrpcServer("127.0.0.1:0", [service])
    async with grpc.aio.insecure_channel(f"127.0.0.1:{await server.start()}") as channel:
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/test.Service/Fetch")
        for _ in range(3):
            assert await method(b"") == body
        assert list(await asyncio.gather(*(method(b"") for _ in range(20)))) == [body] * 20
    await server.drain(0)
    assert any(at_once) or size > 65_530, "of calls one by one, at least the first fits the windows"


async def test_a_handler_reads_the_callers_metadata(serving: Serving) -> None:
    async def tell(call: Call) -> None:
        await call.send(dict(call.metadata)["kinference-declared-length"].encode())  # type: ignore[union-attr]

    async with serving(Tell=tell) as served:
        metadata = (("kinference-declared-length", "17"),)
        assert await served.unary("Tell")(b"", metadata=metadata) == b"17"


async def test_an_rpc_error_ends_the_call_with_its_status_and_message(serving: Serving) -> None:
    async with serving(Refuse=refuse) as served:
        call = served.unary("Refuse")(b"")
        assert await status_of(call) == (grpc.StatusCode.NOT_FOUND, "no body 17")


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
async def test_every_status_reaches_the_caller_as_itself(serving: Serving, status: Status) -> None:
    async def fail(_call: Call) -> None:
        raise RpcError(status, "why")

    async with serving(Fail=fail) as served:
        code = await served.unary("Fail")(b"").code()
        assert code.value[0] == status


async def test_an_unexpected_failure_is_internal_without_details_and_logged_once(
    serving: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(BreakDown=break_down, Join=join) as served:
        call = served.unary("BreakDown")(b"")
        assert await status_of(call) == (grpc.StatusCode.INTERNAL, "internal error")
        assert await served.unary("Join")(b"still here") == b"still here"
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "the handler of test.Service/BreakDown failed"
    ]


async def test_a_failing_call_leaves_the_others_of_its_connection_alone(serving: Serving) -> None:
    async with serving(BreakDown=break_down, Join=join) as served:
        open_call = served.push("Join")()
        await open_call.write(b"before ")
        assert await served.unary("BreakDown")(b"").code() == grpc.StatusCode.INTERNAL
        await open_call.write(b"after")
        await open_call.done_writing()
        assert await open_call == b"before after"


@pytest.mark.parametrize("method", ["/test.Service/Nothing", "/test.Other/Join", "/nonsense"])
async def test_an_unknown_method_is_unimplemented(serving: Serving, method: str) -> None:
    async with serving(Join=join) as served:
        unknown: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = served.channel.unary_unary(method)
        assert await unknown(b"").code() == grpc.StatusCode.UNIMPLEMENTED


async def test_a_chunk_of_exactly_one_mebibyte_is_accepted(serving: Serving) -> None:
    async with serving(Join=join) as served:
        message = BodyChunk(chunk=bytes(MIB)).SerializeToString()
        assert await served.push("Join")(iter([message])) == message


@pytest.mark.parametrize("before", [0, 3])
async def test_a_chunk_of_one_byte_more_is_refused_and_nothing_is_committed(serving: Serving, before: int) -> None:
    push = Push()
    async with serving(Push=push) as served:
        small, large = (BodyChunk(chunk=bytes(size)).SerializeToString() for size in (10, MIB + 1))
        call = served.push("Push")(iter([small] * before + [large]))
        assert await call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        await until(lambda: push.ended == 1)
    assert push.committed == 0


async def test_a_refusal_after_the_false_end_of_a_large_chunk_does_not_hide_its_status(serving: Serving) -> None:
    async def insist(call: Call) -> None:
        await collect(call)
        raise RpcError(Status.INVALID_ARGUMENT, "too few bytes")

    async with serving(Insist=insist) as served:
        call = served.push("Insist")(iter([bytes(MIB + 5)]))
        assert await call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_reset_push_is_never_committed(serving: Serving, caplog: pytest.LogCaptureFixture) -> None:
    push = Push()
    async with serving(Push=push) as served:
        for batch in range(1, 11):
            calls = [served.push("Push")() for _ in range(20)]
            await asyncio.gather(*(call.write(b"part") for call in calls))
            await until(partial(push.has_begun, 20 * batch))
            for call in calls:
                call.cancel()
        await until(lambda: push.ended == push.begun)
    assert push.committed == 0
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_client_that_vanishes_during_an_answer_ends_the_handler(serving: Serving) -> None:
    ended = asyncio.Event()

    async def flood(call: Call) -> None:
        try:
            while True:
                await call.send(bytes(65_536))
        finally:
            ended.set()

    async with serving(Flood=flood) as served:
        call = served.pull("Flood")(b"")
        await call.read()
        call.cancel()
        async with asyncio.timeout(10):
            await ended.wait()


async def test_the_callers_deadline_cancels_the_handler(serving: Serving) -> None:
    cancelled = asyncio.Event()

    async def wait(_call: Call) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with serving(Wait=wait) as served:
        code = await served.unary("Wait")(b"", timeout=0.05).code()
        assert code == grpc.StatusCode.DEADLINE_EXCEEDED
        async with asyncio.timeout(10):
            await cancelled.wait()


async def test_a_handler_may_stop_waiting_for_a_silent_caller(serving: Serving) -> None:
    async def impatient(call: Call) -> None:
        await call.receive()
        try:
            await asyncio.wait_for(call.receive(), 0.02)
        except TimeoutError:
            raise RpcError(Status.DEADLINE_EXCEEDED, "nothing for 0.02 s") from None

    async with serving(Impatient=impatient) as served:
        call = served.push("Impatient")()
        await call.write(b"part")
        assert await status_of(call) == (grpc.StatusCode.DEADLINE_EXCEEDED, "nothing for 0.02 s")


async def test_sending_to_a_caller_that_is_gone_raises_client_gone(serving: Serving) -> None:
    push_begun, result = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def late(call: Call) -> None:
        await call.receive()
        push_begun.set()
        try:
            await call.receive()
            await call.send(b"reply")
        except (ClientGone, asyncio.CancelledError) as error:
            result.set_result(type(error))
            raise

    async with serving(Late=late) as served:
        call = served.push("Late")()
        await call.write(b"part")
        await push_begun.wait()
        call.cancel()
        async with asyncio.timeout(10):
            assert await result in (ClientGone, asyncio.CancelledError)


async def test_thousands_of_streams_opened_at_once_are_all_served(serving: Serving) -> None:
    async with serving(Join=join) as served:
        method = served.push("Join")
        calls = [method(iter([b"x"])) for _ in range(3_000)]
        answers = await asyncio.gather(*calls)
    assert set(answers) == {b"x"}


async def test_answers_are_not_compressed_even_for_a_caller_that_could(serving: Serving) -> None:
    async with serving(Join=join) as served:
        call = served.unary("Join")(bytes(10_000))  # grpcio tells each server that it takes gzip
        assert await call == bytes(10_000)
        headers = dict(await call.initial_metadata() or ())
    assert headers.get("grpc-encoding", "identity") == "identity"


async def test_a_port_in_use_is_an_error_that_names_the_address(serving: Serving) -> None:
    async with serving() as served:
        second = type(served.server)(f"127.0.0.1:{served.port}", [])
        with pytest.raises(OSError, match="in use"):
            await second.start()


@pytest.mark.parametrize("service", ["", "test.Service"])
async def test_health_tells_serving_for_the_server_and_each_service(serving: Serving, service: str) -> None:
    async with serving(Join=join) as served:
        answer = await health_pb2_grpc.HealthStub(served.channel).Check(health_pb2.HealthCheckRequest(service=service))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_health_does_not_know_a_service_that_is_not_served(serving: Serving) -> None:
    async with serving(Join=join) as served:
        call = health_pb2_grpc.HealthStub(served.channel).Check(health_pb2.HealthCheckRequest(service="test.Other"))
        assert await call.code() == grpc.StatusCode.NOT_FOUND


async def test_reflection_lists_every_service(serving: Serving) -> None:
    async with serving(Join=join) as served:
        stub = reflection_pb2_grpc.ServerReflectionStub(served.channel)
        requests = [reflection_pb2.ServerReflectionRequest(list_services="")]
        async for answer in stub.ServerReflectionInfo(iter(requests)):
            names = {service.name for service in answer.list_services_response.service}
    assert names >= {"test.Service", "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


async def test_a_server_that_stops_advertising_still_serves(serving: Serving) -> None:
    async with serving(Join=join) as served:
        await served.server.stop_advertising()
        answer = await health_pb2_grpc.HealthStub(served.channel).Check(health_pb2.HealthCheckRequest())
        assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert await served.unary("Join")(b"last") == b"last"


async def test_draining_lets_a_running_call_finish_and_takes_no_new_one(serving: Serving) -> None:
    begun = asyncio.Event()

    async def join_when_begun(call: Call) -> None:
        begun.set()
        await join(call)

    async with serving(Join=join_when_begun) as served:
        running = served.push("Join")()
        await running.write(b"first ")
        await begun.wait()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(served.server.drain(30))
            await asyncio.sleep(0)  # lets the drain begin
            code, message = await status_of(served.unary("Join")(b""))
            assert (code, message) == (grpc.StatusCode.UNAVAILABLE, "the server is shutting down")
            await running.write(b"last")
            await running.done_writing()
            assert await running == b"first last"


async def test_draining_does_not_wait_for_a_health_watch(serving: Serving) -> None:
    async with serving(Join=join) as served:
        watch = health_pb2_grpc.HealthStub(served.channel).Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        async with asyncio.timeout(10):
            await served.server.drain(600)


async def test_draining_cancels_what_outlasts_its_time(serving: Serving) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait(_call: Call) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with serving(Wait=wait) as served:
        call = served.unary("Wait")(b"")
        await begun.wait()
        await served.server.drain(0.05)
        assert ended.is_set()
        assert await call.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)

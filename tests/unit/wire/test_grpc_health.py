"""The health service over fake calls; real ones are in tests/conformance/rpc."""

import asyncio
from collections.abc import Sequence

import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from kinference.ids import Seconds
from kinference.wire.grpc_health import Health
from kinference.wire.rpc import RpcError, Status

SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING


class OneAsk:
    """A call with one message."""

    def __init__(self, message: bytes) -> None:
        self.message = message
        self.answers: asyncio.Queue[int] = asyncio.Queue()

    def tell(self, name: str, value: str) -> None: ...

    @property
    def metadata(self) -> Sequence[tuple[str, str | bytes]]:
        return ()

    @property
    def peer_names(self) -> Sequence[str]:
        return ()

    async def receive(self, timeout: Seconds | None = None) -> bytes | None:
        return self.message

    async def send(self, message: bytes) -> None:
        self.answers.put_nowait(HealthCheckResponse.FromString(message).status)

    async def rest(self) -> None: ...

    def wake(self) -> None: ...

    def takes(self, message: bytes) -> bool:
        return False

    def cut(self) -> None:
        raise AssertionError


def ask(name: str) -> OneAsk:
    return OneAsk(HealthCheckRequest(service=name).SerializeToString())


async def test_a_check_knows_what_is_served_until_it_stops() -> None:
    health = Health(["a.B"])
    check = health.service().methods["Check"]
    for name in ("", "a.B"):
        call = ask(name)
        await check(call)
        assert call.answers.get_nowait() == SERVING
    health.stop()
    call = ask("a.B")
    await check(call)
    assert call.answers.get_nowait() == NOT_SERVING


async def test_a_check_of_what_is_not_served_is_not_found() -> None:
    with pytest.raises(RpcError) as caught:
        await Health([]).service().methods["Check"](ask("other"))
    assert caught.value.status is Status.NOT_FOUND


async def test_what_is_no_request_is_invalid() -> None:
    with pytest.raises(RpcError) as caught:
        await Health([]).service().methods["Check"](OneAsk(b"\xff"))
    assert caught.value.status is Status.INVALID_ARGUMENT


@pytest.mark.parametrize(("name", "first", "then"), [("", SERVING, NOT_SERVING), ("other", 3, 3)])
async def test_a_watch_tells_now_and_at_the_change(name: str, first: int, then: int) -> None:
    health, call = Health([]), ask(name)
    async with asyncio.TaskGroup() as tasks:
        watch = tasks.create_task(health.service().methods["Watch"](call))
        assert await call.answers.get() == first
        health.stop()
        assert await call.answers.get() == then
        watch.cancel()

"""A proxy as others write it: grpcio and the contract's own file, nothing of our package."""

import asyncio
import importlib.util
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc
import pytest
from grpc_tools import protoc

from tests.e2e.processes import engine, serve

PROTO = Path(__file__).parents[2] / "proto"
FLOWS = 100
CHUNK = 1000


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The messages, generated from the contract as any caller would."""
    folder = tmp_path_factory.mktemp("generated")
    assert protoc.main(["", f"-I{PROTO}", f"--python_out={folder}", f"{PROTO}/kinference/v1/picker.proto"]) == 0
    spec = importlib.util.spec_from_file_location("generated_picker_pb2", folder / "kinference/v1/picker_pb2.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


class Caller:
    """The six methods on one channel."""

    def __init__(self, channel: grpc.aio.Channel, contract: ModuleType) -> None:
        self._channel, self._contract = channel, contract

    def _method(self, name: str, kind: str, asked: str, answered: str) -> Any:
        return getattr(self._channel, kind)(
            f"/kinference.v1.Picker/{name}",
            request_serializer=getattr(self._contract, asked).SerializeToString,
            response_deserializer=getattr(self._contract, answered).FromString,
        )

    async def flow(self, number: int) -> str:
        """One request from its body to its last report; the endpoint that it was sent to."""
        contract = self._contract
        body = b'{"model":"demo","messages":[{"role":"user","content":"%d %s"}]}' % (number, b"x" * 40 * number)

        async def chunks() -> AsyncIterator[object]:
            for start in range(0, len(body), CHUNK):
                yield contract.BodyChunk(chunk=body[start : start + CHUNK])
                await asyncio.sleep(0)

        push = self._method("PushBody", "stream_unary", "BodyChunk", "PushBodyResponse")
        pushed = await push(chunks(), metadata=(("kinference-declared-length", str(len(body))),))
        assert pushed.total_bytes == len(body)
        pick = self._method("Pick", "unary_unary", "PickRequest", "PickResponse")
        picked = await pick(contract.PickRequest(body_stream_id=pushed.stream_id, tenant=""))
        assert picked.outcome == contract.PickResponse.OK
        assert picked.requested_model == "demo"
        pull = self._method("PullBody", "unary_stream", "PullBodyRequest", "BodyChunk")
        asked = contract.PullBodyRequest(response_id=picked.response_id)
        pulled = b"".join([part.chunk async for part in pull(asked)])
        assert (pulled, len(pulled)) == (body, picked.body_total_bytes)
        await self._report(picked.response_id, number)
        return str(picked.local.endpoint)

    async def _report(self, response_id: int, number: int) -> None:
        contract = self._contract
        first = self._method("ReportFirstToken", "unary_unary", "ReportFirstTokenRequest", "ReportFirstTokenResponse")
        report = contract.ReportFirstTokenRequest(response_id=response_id, observed_ttft_ms=20, upstream_status=200)
        assert (await first(report)).acknowledged
        final = self._method("ReportFinalToken", "unary_unary", "ReportFinalTokenRequest", "ReportFinalTokenResponse")
        counts = {"prompt_tokens": 10 * number, "completion_tokens": 5, "cached_tokens": 0}
        done = contract.ReportFinalTokenRequest(response_id=response_id, model="demo", **counts)
        assert (await final(done)).acknowledged
        assert not (await final(done)).acknowledged


async def flows(port: int, contract: ModuleType) -> list[str]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        caller = Caller(channel, contract)
        return await asyncio.gather(*(caller.flow(number) for number in range(FLOWS)))


def test_a_hundred_interleaved_flows_complete_on_one_connection(tmp_path: Path, contract: ModuleType) -> None:
    with engine() as one, engine() as other, serve(tmp_path, "--engine", one, "--engine", other) as served:
        endpoints = asyncio.run(flows(served.picker, contract))
    assert len(endpoints) == FLOWS
    assert set(endpoints) == {one.removeprefix("http://"), other.removeprefix("http://")}

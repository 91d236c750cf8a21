"""Server reflection over fake calls."""

from collections.abc import Sequence
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from kinference.ids import Seconds
from kinference.wire.grpc_reflection import SERVICES, Reflection
from kinference.wire.proto import picker_pb2
from kinference.wire.rpc import RpcError, Status


class Asks:
    """A call with some messages."""

    def __init__(self, *messages: bytes) -> None:
        self.messages = [*messages]
        self.answers: list[Any] = []

    def tell(self, name: str, value: str) -> None: ...

    @property
    def metadata(self) -> Sequence[tuple[str, str | bytes]]:
        return ()

    @property
    def peer_names(self) -> Sequence[str]:
        return ()

    async def receive(self, timeout: Seconds | None = None) -> bytes | None:
        return self.messages.pop(0) if self.messages else None

    async def send(self, message: bytes) -> None:
        self.answers.append(ServerReflectionResponse.FromString(message))

    async def rest(self) -> None: ...

    def wake(self) -> None: ...

    def takes(self, message: bytes) -> bool:
        return False

    def cut(self) -> None:
        raise AssertionError


async def answer(**asked: Any) -> Any:
    call = Asks(ServerReflectionRequest(**asked).SerializeToString())
    (service, _) = Reflection(["kinference.v1.Picker"]).services()
    await service.methods["ServerReflectionInfo"](call)
    (found,) = call.answers
    assert found.original_request == ServerReflectionRequest(**asked)
    return found


async def test_every_service_is_listed() -> None:
    found = await answer(list_services="")
    assert {service.name for service in found.list_services_response.service} == {"kinference.v1.Picker", *SERVICES}


@pytest.mark.parametrize(
    "asked",
    [
        {"file_containing_symbol": "kinference.v1.Picker"},
        {"file_containing_symbol": "kinference.v1.BodyChunk"},
        {"file_by_filename": picker_pb2.DESCRIPTOR.name},
    ],
)
async def test_a_file_comes_with_all_that_it_imports(asked: dict[str, str]) -> None:
    found = await answer(**asked)
    files = [FileDescriptorProto.FromString(file) for file in found.file_descriptor_response.file_descriptor_proto]
    assert files[0].name == picker_pb2.DESCRIPTOR.name
    assert {name for file in files for name in file.dependency} <= {file.name for file in files}


@pytest.mark.parametrize(
    "asked",
    [
        {"file_containing_symbol": "no.such"},
        {"file_by_filename": "no/such.proto"},
        {"file_containing_extension": {"containing_type": "kinference.v1.BodyChunk", "extension_number": 9}},
        {"all_extension_numbers_of_type": "no.Such"},
        {},
    ],
)
async def test_what_is_not_there_is_not_found(asked: dict[str, Any]) -> None:
    assert (await answer(**asked)).error_response.error_code == Status.NOT_FOUND


async def test_a_message_without_extensions_has_none() -> None:
    found = await answer(all_extension_numbers_of_type="kinference.v1.BodyChunk")
    assert list(found.all_extension_numbers_response.extension_number) == []


async def test_what_is_no_request_is_invalid() -> None:
    (service, _) = Reflection([]).services()
    with pytest.raises(RpcError) as caught:
        await service.methods["ServerReflectionInfo"](Asks(b"\xff"))
    assert caught.value.status is Status.INVALID_ARGUMENT

"""gRPC server reflection, v1 and v1alpha, which are the same messages under two names."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import DecodeError
from grpc_reflection.v1alpha import reflection_pb2

from kinference.wire.rpc import Call, RpcError, RpcService, Status

SERVICES = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
_Request = reflection_pb2.ServerReflectionRequest
_Answer = reflection_pb2.ServerReflectionResponse


class Reflection:
    """Tells of the services named, and of every message that this process has a descriptor of."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = sorted((*names, *SERVICES))
        self._pool = descriptor_pool.Default()
        self._answers: Mapping[str, Callable[[Any], Any]] = {
            "list_services": self._list,
            "file_by_filename": lambda name: self._files(self._pool.FindFileByName(name)),
            "file_containing_symbol": lambda name: self._files(self._pool.FindFileContainingSymbol(name)),
            "file_containing_extension": self._extension,
            "all_extension_numbers_of_type": self._extension_numbers,
        }

    def services(self) -> list[RpcService]:
        return [RpcService(name, {"ServerReflectionInfo": self._serve}, inline=True) for name in SERVICES]

    async def _serve(self, call: Call) -> None:
        while (message := await call.receive()) is not None:
            try:
                request = _Request.FromString(message)
            except DecodeError:
                raise RpcError(Status.INVALID_ARGUMENT, "the message is not a ServerReflectionRequest") from None
            answer = self._answer(request)
            answer.original_request.CopyFrom(request)
            await call.send(answer.SerializeToString())

    def _answer(self, request: Any) -> Any:  # noqa: ANN401 - grpc_reflection ships no types
        kind = request.WhichOneof("message_request")
        try:
            return self._answers[kind](getattr(request, kind))
        except (KeyError, TypeError):  # the pool's way to say that it knows no such thing
            error = reflection_pb2.ErrorResponse(error_code=Status.NOT_FOUND, error_message="not found")
            return _Answer(error_response=error)

    def _list(self, _name: str) -> Any:  # noqa: ANN401 - grpc_reflection ships no types
        names = [reflection_pb2.ServiceResponse(name=name) for name in self._names]
        return _Answer(list_services_response=reflection_pb2.ListServiceResponse(service=names))

    def _files(self, file: FileDescriptor) -> Any:  # noqa: ANN401 - grpc_reflection ships no types
        found: dict[str, bytes] = {}
        _collect(file, found)
        return _Answer(
            file_descriptor_response=reflection_pb2.FileDescriptorResponse(file_descriptor_proto=found.values())
        )

    def _extension(self, asked: Any) -> Any:  # noqa: ANN401 - grpc_reflection ships no types
        extended = self._pool.FindMessageTypeByName(asked.containing_type)
        extension = self._pool.FindExtensionByNumber(extended, asked.extension_number)
        return self._files(self._pool.FindFileContainingSymbol(extension.full_name))

    def _extension_numbers(self, name: str) -> Any:  # noqa: ANN401 - grpc_reflection ships no types
        extensions = self._pool.FindAllExtensions(self._pool.FindMessageTypeByName(name))
        numbers = sorted(extension.number for extension in extensions)
        return _Answer(
            all_extension_numbers_response=reflection_pb2.ExtensionNumberResponse(
                base_type_name=name, extension_number=numbers
            )
        )


def _collect(file: FileDescriptor, found: dict[str, bytes]) -> None:
    """A file and all that it imports."""
    if file.name in found:
        return
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    found[file.name] = proto.SerializeToString()
    for imported in file.dependencies:
        _collect(imported, found)

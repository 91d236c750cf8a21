"""A client of `openshell.inference.v1` made from the contract's own description, and of its later generation from the
fields that came after. It imports nothing of ours.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

PACKAGE = "openshell.inference.v1"
CONTRACT: Mapping[str, Any] = json.loads(Path(__file__).parents[1].joinpath("wire.json").read_text())[PACKAGE]
TYPES = {"string": 9, "bool": 8, "uint64": 4, "int64": 3}
LATER_FIELDS: Mapping[str, tuple[tuple[str, int, str], ...]] = {
    "SetClusterInferenceRequest": (("timeout_secs", 6, "uint64"), ("workspace", 7, "string")),
    "SetClusterInferenceResponse": (("timeout_secs", 7, "uint64"), ("workspace", 8, "string")),
    "GetClusterInferenceRequest": (("workspace", 2, "string"),),
    "GetClusterInferenceResponse": (("timeout_secs", 5, "uint64"), ("workspace", 6, "string")),
    "ResolvedRoute": (
        ("timeout_secs", 7, "uint64"),
        ("model_in_path", 8, "bool"),
        ("request_path_override", 9, "string"),
    ),
    "DeleteRequest": (("route_name", 1, "string"), ("workspace", 2, "string")),
    "DeleteResponse": (("deleted", 1, "bool"),),
}

Values = Mapping[str, Any]


def messages(later: Mapping[str, tuple[tuple[str, int, str], ...]]) -> Mapping[str, type[Message]]:
    """Every message of the contract, with the later fields of a generation."""
    file = descriptor_pb2.FileDescriptorProto(name="contract.proto", package=PACKAGE, syntax="proto3")
    for name in sorted({*CONTRACT["messages"], *later}):
        message = file.message_type.add(name=name)
        for field in CONTRACT["messages"].get(name, {"fields": []})["fields"]:
            add_field(message, field["name"], field["number"], field["type"], field["repeated"])
        for added, number, kind in later.get(name, ()):
            add_field(message, added, number, kind, is_repeated=False)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    names = [message.name for message in file.message_type]
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in names}


def add_field(message: Any, name: str, number: int, kind: str, is_repeated: bool) -> None:
    field = message.field.add(name=name, number=number, label=3 if is_repeated else 1)
    if kind in TYPES:
        field.type = TYPES[kind]
    else:
        field.type, field.type_name = 11, f".{kind}"


class Client:
    """Each method is one RPC; `later` chooses the generation."""

    def __init__(self, channel: grpc.aio.Channel, *, later: bool = False, token: str = "") -> None:
        self._channel, self._later = channel, later
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._messages = messages(LATER_FIELDS if later else {})

    async def set(self, provider: str = "p", model: str = "m", route: str = "", **more: Any) -> Any:
        values = {"provider_name": provider, "model_id": model, "route_name": route, **more}
        return await self._call(
            "SetInferenceRoute" if self._later else "SetClusterInference", "SetClusterInference", values
        )

    async def get(self, route: str = "", **more: Any) -> Any:
        values = {"route_name": route, **more}
        return await self._call(
            "GetInferenceRoute" if self._later else "GetClusterInference", "GetClusterInference", values
        )

    async def bundle(self) -> Any:
        return await self._call("GetInferenceBundle", "GetInferenceBundle", {})

    async def delete(self, route: str = "", **more: Any) -> bool:
        values = {"route_name": route, **more}
        deleted: bool = (await self._call("DeleteInferenceRoute", "Delete", values)).deleted
        return deleted

    async def _call(self, method: str, message: str, values: Values) -> Any:
        request, response = (self._messages[f"{message}{kind}"] for kind in ("Request", "Response"))
        call: Any = self._channel.unary_unary(
            f"/{PACKAGE}.Inference/{method}",
            request_serializer=lambda sent: sent.SerializeToString(),
            response_deserializer=response.FromString,
        )
        return await call(request(**values), metadata=self._metadata, timeout=30)

"""Our descriptors say what the contracts say: every service, method, message, field, number, type and enum value."""

import json
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)

from kinference.wire.proto import inference_pb2, picker_pb2

Described: TypeAlias = dict[str, Any]

CONTRACTS: Described = json.loads(Path(__file__).with_name("wire.json").read_text())
FILES = [FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb) for module in (picker_pb2, inference_pb2)]


def describe_file(file: FileDescriptorProto) -> Described:
    return {
        "services": {f"{file.package}.{service.name}": describe_service(service) for service in file.service},
        "messages": {message.name: describe_message(message) for message in file.message_type},
    }


def describe_service(service: ServiceDescriptorProto) -> Described:
    return {
        method.name: {
            "request": method.input_type.removeprefix("."),
            "response": method.output_type.removeprefix("."),
            "client_streaming": method.client_streaming,
            "server_streaming": method.server_streaming,
        }
        for method in service.method
    }


def describe_message(message: DescriptorProto) -> Described:
    oneofs = [oneof.name for oneof in message.oneof_decl]
    described: Described = {"fields": [describe_field(field, oneofs) for field in message.field]}
    if message.enum_type:
        described["enums"] = {enum.name: describe_enum(enum) for enum in message.enum_type}
    return described


def describe_enum(enum: EnumDescriptorProto) -> Described:
    return {value.name: value.number for value in enum.value}


def describe_field(field: FieldDescriptorProto, oneofs: list[str]) -> Described:
    scalar = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    in_oneof = field.HasField("oneof_index") and not field.proto3_optional
    return {
        "name": field.name,
        "number": field.number,
        "type": field.type_name.removeprefix(".") or scalar,
        "repeated": field.label == FieldDescriptorProto.LABEL_REPEATED,
        "optional": field.proto3_optional,
        "oneof": oneofs[field.oneof_index] if in_oneof else None,
    }


def by_number(described: Described) -> Described:
    """The same with fields in the order of their numbers: the order in which they are written means nothing."""
    for message in described["messages"].values():
        message["fields"].sort(key=lambda field: field["number"])
    return described


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.package)
def test_a_file_says_what_its_contract_says(file: FileDescriptorProto) -> None:
    assert by_number(describe_file(file)) == by_number(CONTRACTS[file.package])


def test_every_contract_has_its_file() -> None:
    assert [file.package for file in FILES] == list(CONTRACTS)


def test_the_inference_contract_keeps_its_options() -> None:
    options = FILES[1].options
    assert options.java_multiple_files
    assert options.java_package == "com.anthropic.openshell.inference.v1"


def test_the_body_chunk_has_its_one_byte_tag() -> None:
    assert picker_pb2.BodyChunk(chunk=b"x").SerializeToString() == b"\x0a\x01x"

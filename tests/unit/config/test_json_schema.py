"""The JSON Schema: valid itself, current where published, and of one mind with the loader."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from kinference.config.json_schema import json_schema
from kinference.config.load import parse
from kinference.config.problems import InvalidConfig

ROOT = Path(__file__).parents[3]
VALIDATOR = Draft202012Validator(json_schema())


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(json_schema())


def test_the_published_copy_is_current() -> None:
    published = (ROOT / "docs/reference/config.schema.json").read_text(encoding="utf-8")
    assert json.loads(published) == json_schema(), "run: python docs/generate.py"


@pytest.mark.parametrize("name", ["kinference.yaml", "minimal.yaml"])
def test_the_examples_fit_the_schema(name: str) -> None:
    VALIDATOR.validate(yaml.safe_load((ROOT / "examples" / name).read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "text",
    [
        "foo: 1",
        "limits: {body_max_bytes: 32mib}",
        "limits: {body_ttl: [30s]}",
        "listen: {gateway: 8080}",
        "listen: {gateway: localhost}",
        "pools: [{name: p}]",
        "pools: [{name: p, discovery: {}}]",
        "pools: [{name: p, discovery: {dns: {port: 80}}}]",
        "pools: [{name: p, discovery: {kubernetes: {target_ports: [8000]}}}]",
        "pools: [{name: a/b, endpoints: []}]",
        "pools: [{name: p, endpoints: ['host:8000']}]",
        "pools: [{name: p, endpoints: [{weight: 1}]}]",
        "pools: [{name: p, endpoints: [{url: 'http://h', weight: -1}]}]",
        "pools: [{name: p, endpoints: ['http://h'], engine: vlm}]",
        "backends: [{name: b, api: openai, models: {a: b}}]",
        "backends: [{name: b, api: openai_chat, models: {a: 1}}]",
        "gateway: {keys: [{key: sk-literal, tenant: a}]}",
        "routing: {seed: x}",
        "unmatched_tenant: maybe",
        "tenants: [{tenants: a}]",
        "models:",
    ],
)
def test_what_the_schema_refuses_the_loader_refuses(text: str) -> None:
    assert not VALIDATOR.is_valid(yaml.safe_load(text))
    with pytest.raises(InvalidConfig):
        parse(text)


def test_every_key_is_described() -> None:
    properties = json_schema()["properties"]
    assert all(part["description"] for part in properties.values())
    assert properties["limits"]["properties"]["body_max_bytes"]["default"] == "32MiB"

import json

import pytest

from kinference.shapes.hosts import hosted, region_of
from kinference.shapes.lost import Untranslatable
from kinference.shapes.translate import Way, emit, plan
from kinference.vocabulary import Api


def test_vertex_names_the_model_in_the_path_and_the_version_in_the_body() -> None:
    body = b'{ "temperature":1e0, "model" : "claude","messages":[{"model":"x"}]}'
    made = hosted(body, Api.VERTEX_ANTHROPIC)
    assert made == b'{ "temperature":1e0, "anthropic_version":"vertex-2023-10-16","messages":[{"model":"x"}]}'
    assert json.loads(made)["anthropic_version"] == "vertex-2023-10-16"


def test_vertex_gets_nothing_that_it_refuses() -> None:
    body = b'{"model":"claude", "context_management" : {"edits":[]} ,"max_tokens":9}'
    assert hosted(body, Api.VERTEX_ANTHROPIC) == b'{"anthropic_version":"vertex-2023-10-16", "max_tokens":9}'


def test_elsewhere_the_body_stays() -> None:
    body = b'{"model":"m"}'
    assert hosted(body, Api.OPENAI_CHAT) is body


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("bedrock-runtime.us-east-1.amazonaws.com", "us-east-1"),
        ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("bedrock-runtime.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("vpce-0a1b-c2d3.bedrock-runtime.ap-southeast-2.vpce.amazonaws.com", "ap-southeast-2"),
        ("proxy.example.com", ""),
    ],
)
def test_the_host_tells_the_region(host: str, region: str) -> None:
    assert region_of(host) == region


@pytest.mark.parametrize(
    ("members", "more"), [({}, {}), ({"dimensions": 256}, {"parameters": {"outputDimensionality": 256}})]
)
def test_vertex_embeds_by_another_api_than_geminis_own(members: dict[str, int], more: dict[str, object]) -> None:
    way = Way(Api.OPENAI_EMBEDDINGS, Api.VERTEX_GEMINI, "up")
    body = emit(plan(json.dumps({"model": "m", "input": ["a", "\u00e9"], **members}).encode(), way))
    assert json.loads(hosted(body, Api.VERTEX_GEMINI)) == {
        "instances": [{"content": "a"}, {"content": "\u00e9"}],
        **more,
    }
    talk = b'{"contents":[]}'
    assert hosted(talk, Api.VERTEX_GEMINI) is talk


@pytest.mark.parametrize("kind", ["image", "document"])
def test_claude_on_vertex_fetches_nothing(kind: str) -> None:
    part = {"type": "input_image", "image_url": "https://x.example/a.png"}
    if kind == "document":
        part = {"type": "input_file", "file_url": "https://x.example/a.pdf"}
    said = {"role": "user", "content": [part]}
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    within = [
        {"role": "user", "content": "x"},
        call,
        {"type": "function_call_output", "call_id": "c", "output": [part]},
    ]
    for items in ([said], within):
        body = json.dumps({"model": "m", "input": items}).encode()
        with pytest.raises(Untranslatable, match="inline image"):
            plan(body, Way(Api.OPENAI_RESPONSES, Api.VERTEX_ANTHROPIC, "claude-opus-5"))
        plan(body, Way(Api.OPENAI_RESPONSES, Api.ANTHROPIC_MESSAGES, "claude-opus-5"))

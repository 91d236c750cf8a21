import json

from kinference.shapes.hosts import hosted
from kinference.vocabulary import Api


def test_vertex_names_the_model_in_the_path_and_the_version_in_the_body() -> None:
    body = b'{ "temperature":1e0, "model" : "claude","messages":[{"model":"x"}]}'
    made = hosted(body, Api.VERTEX_ANTHROPIC)
    assert made == b'{ "temperature":1e0, "anthropic_version":"vertex-2023-10-16","messages":[{"model":"x"}]}'
    assert json.loads(made)["anthropic_version"] == "vertex-2023-10-16"


def test_elsewhere_the_body_stays() -> None:
    body = b'{"model":"m"}'
    assert hosted(body, Api.OPENAI_CHAT) is body

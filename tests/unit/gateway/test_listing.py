import json

from kinference.gateway import listing
from kinference.gateway.backends import ServedModel
from kinference.gateway.routes import Dialect

MODELS = (ServedModel("org/b", created=86400), ServedModel("a"), ServedModel("a"))


def test_openai_clients_read_an_openai_list_in_order_and_without_repetition() -> None:
    listed = json.loads(listing.of_many(MODELS, Dialect.OPENAI))
    assert listed["object"] == "list"
    assert [model["id"] for model in listed["data"]] == ["a", "org/b"]
    assert listed["data"][1] == {"id": "org/b", "object": "model", "created": 86400, "owned_by": "kinference"}


def test_anthropic_clients_read_an_anthropic_list() -> None:
    listed = json.loads(listing.of_many(MODELS, Dialect.ANTHROPIC))
    assert (listed["first_id"], listed["last_id"], listed["has_more"]) == ("a", "org/b", False)
    assert listed["data"][1] == {
        "type": "model",
        "id": "org/b",
        "display_name": "org/b",
        "created_at": "1970-01-02T00:00:00Z",
    }


def test_gemini_clients_read_a_gemini_list() -> None:
    listed = json.loads(listing.of_many(MODELS, Dialect.GEMINI))
    assert [model["name"] for model in listed["models"]] == ["models/a", "models/org/b"]
    assert listed["models"][1] == json.loads(listing.of_one(MODELS[0], Dialect.GEMINI))
    assert "generateContent" in listed["models"][0]["supportedGenerationMethods"]
    assert json.loads(listing.of_many((), Dialect.GEMINI)) == {"models": []}


def test_an_empty_list_is_a_list() -> None:
    assert json.loads(listing.of_many((), Dialect.ANTHROPIC)) == {
        "data": [],
        "has_more": False,
        "first_id": None,
        "last_id": None,
    }


def test_one_model_is_shown_in_the_clients_dialect() -> None:
    assert json.loads(listing.of_one(ServedModel("a"), Dialect.OPENAI))["object"] == "model"
    assert json.loads(listing.of_one(ServedModel("a"), Dialect.ANTHROPIC))["type"] == "model"

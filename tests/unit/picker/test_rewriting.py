import json
from typing import Any

import msgspec
import pytest

from kinference.core.decision import BackendChoice, EndpointChoice
from kinference.ids import Address, ObjectRef, StreamId
from kinference.picker.rewriting import Rewritten, rewrite
from kinference.ports import PickArguments
from kinference.shapes.detect import parse
from kinference.shapes.lost import Untranslatable
from kinference.shapes.scan import BadBody
from kinference.shapes.translate import Way, translated
from kinference.vocabulary import Api, Engine, Loss

CLOUD = ObjectRef("default", "cloud")
CHAT = b'{ "model":"m", "messages":[{"role":"user","content":"hi"}],"seed":1}'
GEMINI = b'{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}'
CHAT_PATH, GEMINI_PATH = "/v1/chat/completions", "/v1beta/models/m:streamGenerateContent"


def cloud(api: Api, model: str = "theirs", path: str = "") -> BackendChoice:
    return BackendChoice(CLOUD, model, api, path)


def rewritten(
    choice: BackendChoice | EndpointChoice, body: bytes = CHAT, path: str = CHAT_PATH, loss: Loss = Loss.WARN
) -> Rewritten:
    return rewrite(body, parse(body, path), choice, PickArguments(StreamId(1), "", loss=loss))


def loaded(made: Rewritten) -> Any:
    assert made.body is not None
    return json.loads(made.body)


def test_the_same_api_is_patched_and_keeps_its_path() -> None:
    made = rewritten(cloud(Api.OPENAI_CHAT))
    assert made == Rewritten(CHAT.replace(b'"m"', b'"theirs"'))
    assert rewritten(cloud(Api.OPENAI_CHAT, "m")) == Rewritten(None)


def test_a_configured_path_goes_before_the_apis_own() -> None:
    assert rewritten(cloud(Api.OPENAI_CHAT, path="/x/{model}?v=1")).path == "/x/theirs?v=1"
    assert rewritten(cloud(Api.ANTHROPIC_MESSAGES, path="/x")).path == "/x"


def test_another_api_is_translated_and_sent_to_its_path() -> None:
    made = rewritten(cloud(Api.ANTHROPIC_MESSAGES))
    assert made.path == "/v1/messages"
    assert loaded(made)["model"] == "theirs"
    assert loaded(made)["messages"] == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]


def test_what_leads_a_translated_bodys_answer_back_comes_with_it() -> None:
    way = Way(Api.OPENAI_CHAT, Api.ANTHROPIC_MESSAGES, "theirs")
    assert rewritten(cloud(Api.ANTHROPIC_MESSAGES)).way_back == translated(CHAT, way)[1]
    assert rewritten(cloud(Api.OPENAI_CHAT)).way_back is None


def test_vertex_has_the_model_in_its_path_alone() -> None:
    made = rewritten(cloud(Api.VERTEX_ANTHROPIC))
    assert made.path == "/publishers/anthropic/models/theirs:rawPredict"
    assert "model" not in loaded(made)
    assert loaded(made)["anthropic_version"] == "vertex-2023-10-16"


def test_an_engine_is_asked_in_the_clients_api() -> None:
    engine = EndpointChoice(ObjectRef("default", "pool"), Address("10.0.0.1:8000"), "other", 1)
    assert rewritten(engine) == Rewritten(CHAT.replace(b'"m"', b'"other"'))


@pytest.mark.parametrize(("kind", "top_k"), [(Engine.VLLM, 5), (Engine.SGLANG, 5), (Engine.LLAMACPP, None)])
def test_an_engine_that_extends_chat_is_told_more(kind: Engine, top_k: int | None) -> None:
    engine = EndpointChoice(ObjectRef("default", "pool"), Address("10.0.0.1:8000"), "m", 1, kind)
    body = GEMINI.replace(b'{"contents"', b'{"generationConfig":{"topK":5},"contents"')
    assert loaded(rewritten(engine, body, GEMINI_PATH)).get("top_k") == top_k


def test_strictly_a_loss_is_refused() -> None:
    with pytest.raises(Untranslatable, match="seed"):
        rewritten(cloud(Api.ANTHROPIC_MESSAGES), loss=Loss.STRICT)
    assert rewritten(cloud(Api.OPENAI_CHAT, "m"), loss=Loss.STRICT) == Rewritten(None)


def test_j5_a_model_that_leads_elsewhere_is_refused() -> None:
    with pytest.raises(BadBody, match="model"):
        rewritten(cloud(Api.VERTEX_ANTHROPIC, "../../x"))


def test_geminis_body_stays_and_its_path_names_the_destinations_model() -> None:
    made = rewritten(cloud(Api.GEMINI), GEMINI, GEMINI_PATH)
    assert made == Rewritten(None, "/v1beta/models/theirs:streamGenerateContent?alt=sse")


def test_e10_a_thought_sealed_for_another_is_taken_out_of_a_body_that_stays_in_its_api() -> None:
    body = {
        "model": "theirs",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "r", "signature": ""}]},
            {"role": "user", "content": "go on"},
        ],
    }
    raw, path = json.dumps(body).encode(), "/v1/messages"
    assert [message["role"] for message in loaded(rewritten(cloud(Api.ANTHROPIC_MESSAGES), raw, path))["messages"]] == [
        "user",
        "user",
    ]
    engine = EndpointChoice(ObjectRef("default", "pool"), Address("10.0.0.1:8000"), "theirs", 1)
    assert rewritten(engine, raw, path) == Rewritten(None)


def test_j10_an_engine_is_told_what_sets_a_tenants_prompts_apart_and_a_provider_is_not() -> None:
    engine = EndpointChoice(ObjectRef("default", "pool"), Address("10.0.0.1:8000"), "m", 1)
    for body, path in ((CHAT, CHAT_PATH), (GEMINI, GEMINI_PATH)):
        parsed = msgspec.structs.replace(parse(body, path), salt="s", has_own_salt=False)
        arguments = PickArguments(StreamId(1), "a")
        assert loaded(rewrite(body, parsed, engine, arguments))["cache_salt"] == "s"
        assert "cache_salt" not in loaded(rewrite(body, parsed, cloud(Api.OPENAI_CHAT), arguments))
    embeddings, path = b'{"model":"m","input":"hi"}', "/v1/embeddings"
    parsed = msgspec.structs.replace(parse(embeddings, path), salt="s", has_own_salt=False)
    assert rewrite(embeddings, parsed, engine, PickArguments(StreamId(1), "a")) == Rewritten(None)

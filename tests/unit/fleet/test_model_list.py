import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinference.fleet.model_list import MODELS_MAX, ModelList, read_model_list
from kinference.vocabulary import Engine


def listing(*cards: object) -> bytes:
    return json.dumps({"object": "list", "data": cards}).encode()


def test_names_engine_and_the_shortest_context_are_read() -> None:
    body = listing(
        {"id": "base", "owned_by": "vllm", "max_model_len": 8192, "permission": [{}]},
        {"id": "adapter", "owned_by": "vllm", "max_model_len": None, "parent": "base"},
        {"id": "small", "owned_by": "vllm", "max_model_len": 4096},
    )
    assert read_model_list(body) == ModelList(("base", "adapter", "small"), 4096, Engine.VLLM, ("adapter",))


@pytest.mark.parametrize(
    ("owner", "engine"),
    [
        ("vllm", Engine.VLLM),
        ("sglang", Engine.SGLANG),
        ("llamacpp", Engine.LLAMACPP),
        ("tensorrt_llm", Engine.TRTLLM),
        ("somebody", Engine.OPENAI),
        (None, Engine.OPENAI),
    ],
)
def test_the_owner_tells_the_engine(owner: str | None, engine: Engine) -> None:
    models = read_model_list(listing({"id": "m", "owned_by": owner}))
    assert models is not None
    assert models.engine is engine


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"data": 5}', b'{"data": [5]}', b"\xff", b"<html>", b"[" * 100_000, b'{"data":' * 100_000],
)
def test_what_is_no_model_list_is_told_apart_from_an_empty_one(body: bytes) -> None:
    assert read_model_list(body) is None
    assert read_model_list(b'{"data": []}') == ModelList((), None, Engine.OPENAI)


def test_ten_thousand_models_are_cut_to_the_limit() -> None:
    models = read_model_list(listing(*({"id": f"m{n}"} for n in range(10_000))))
    assert models is not None
    assert models.names == tuple(f"m{n}" for n in range(MODELS_MAX))


def test_names_and_lengths_that_make_no_sense_are_passed_over() -> None:
    names = ["ok", "", "x" * 257, "new\nline", 5, None, ["m"], "ok"]
    lengths = [-1, 0, 1 << 60, "4096", 1.5, True, [], {}]
    cards = [{"id": name, "max_model_len": length} for name, length in zip(names, lengths, strict=True)]
    assert read_model_list(listing(*cards)) == ModelList(("ok",), None, Engine.OPENAI)


@given(st.binary() | st.builds(lambda cards: json.dumps({"data": cards}).encode(), st.lists(st.dictionaries(
    st.sampled_from(["id", "owned_by", "max_model_len"]), st.none() | st.integers() | st.text() | st.booleans()))))  # fmt: skip
def test_no_answer_breaks_the_reader(body: bytes) -> None:
    models = read_model_list(body)
    assert models is None or all(isinstance(name, str) and name for name in models.names)

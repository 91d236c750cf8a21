"""Pools and backends by name, and what they are unless told otherwise."""

from kinference.config.destinations import Backend, Pool, Target
from kinference.config.values import Name
from kinference.ids import ObjectRef
from kinference.vocabulary import Api, Engine


def test_a_pool_is_known_by_namespace_and_name() -> None:
    assert Pool(Name("llama"), (), Name("team")).ref == ObjectRef("team", "llama")


def test_a_backend_is_known_by_namespace_and_name() -> None:
    assert Backend(Name("cloud"), Api.GEMINI, {}, Name("team")).ref == ObjectRef("team", "cloud")


def test_a_pool_finds_out_what_its_engines_are_and_serve() -> None:
    pool = Pool(Name("llama"), ())
    assert (pool.engine, pool.models, pool.kv_events, pool.ref.namespace) == (Engine.AUTO, None, None, "default")


def test_a_target_takes_the_clients_model_and_its_even_share() -> None:
    assert (Target().model, Target().weight, Target().priority) == ("", 1, 0)

from kinference.core.fleet import BackendSpec, EndpointSpec, Fleet
from kinference.core.policy import ModelRule
from kinference.gateway.backends import EndpointRoute
from kinference.ids import Address, ObjectRef
from kinference.runtime.directory import FleetDirectory, served_models
from kinference.vocabulary import Api, Engine

POOL = ObjectRef("default", "chat")
ADDRESS = Address("127.0.0.1:8000")


def fleet(*models: str) -> Fleet:
    made = Fleet()
    made.set_pool(POOL, [EndpointSpec(POOL, ADDRESS, scheme="https", path_prefix="/engine")])
    made.set_models(POOL, ADDRESS, models)
    return made


def test_models_come_from_engines_backends_and_the_routing_table() -> None:
    made = fleet("llama")
    made.set_backends([BackendSpec(ObjectRef("default", "openai"), Api.OPENAI_CHAT, {"gpt": "gpt-5"})])
    rules = (ModelRule("alias", ()), ModelRule("free-*", ()))
    models = served_models(made, rules)
    assert [model.id for model in models] == ["alias", "free-*", "gpt", "llama"]
    assert [model.id for model in models if model.is_glob] == ["free-*"]


def test_a_model_that_several_serve_is_listed_once() -> None:
    made = fleet("llama")
    made.set_backends([BackendSpec(ObjectRef("default", "openai"), Api.OPENAI_CHAT, {"llama": "x"})])
    assert [model.id for model in served_models(made, ())] == ["llama"]


def test_a_pool_of_which_no_endpoint_has_told_its_models_may_serve_any() -> None:
    (model,) = served_models(fleet(), ())
    assert model.matches("whatever")
    assert model.is_glob


def test_a_pool_that_has_no_endpoint_yet_may_serve_any() -> None:
    made = fleet("llama")
    made.set_pool(ObjectRef("default", "discovered"), ())
    assert any(model.matches("whatever") for model in served_models(made, ()))


def test_endpoints_of_one_pool_serve_the_same_models_so_one_that_is_silent_adds_nothing() -> None:
    made = fleet("llama")
    made.set_pool(POOL, [EndpointSpec(POOL, ADDRESS), EndpointSpec(POOL, Address("127.0.0.1:9"))])
    assert [model.id for model in served_models(made, ())] == ["llama"]


def test_the_directory_follows_the_fleet() -> None:
    made = fleet("llama")
    directory = FleetDirectory(made, ())
    assert directory.locate(ADDRESS) == EndpointRoute("https://127.0.0.1:8000", "/engine")
    assert [model.id for model in directory.models()] == ["llama"]
    made.set_models(POOL, ADDRESS, ["mistral"])
    assert [model.id for model in directory.models()] == ["mistral"]
    made.remove_pool(POOL)
    assert directory.locate(ADDRESS) is None
    assert list(directory.models()) == []


def test_an_engine_that_extends_chat_is_known_for_it_once_it_is_known() -> None:
    made = fleet("llama")
    directory = FleetDirectory(made, ())
    directory.locate(ADDRESS)
    made.set_engine(POOL, ADDRESS, Engine.SGLANG)
    assert directory.locate(ADDRESS) == EndpointRoute("https://127.0.0.1:8000", "/engine", extends_chat=True)


def test_an_unknown_address_is_not_guessed() -> None:
    assert FleetDirectory(fleet(), ()).locate(Address("10.0.0.1:1")) is None

from collections.abc import Mapping, Sequence

import pytest
from google.protobuf.message import Message

from kinference.control.registry import ProviderChange, Registry
from kinference.control.routes import Routes
from kinference.control.service import inference_service
from kinference.control.store.sqlite import SqliteStore
from kinference.wire.proto import control_pb2 as later
from kinference.wire.proto import inference_pb2 as seed
from kinference.wire.rpc import RpcError, RpcHandler, Status


class Clock:
    def now(self) -> float:
        return 1.0

    def wall(self) -> float:
        return 1_700_000_000.5


class Asked:
    """One call: what was sent, and what came back."""

    metadata: Sequence[tuple[str, str | bytes]] = (("user-agent", "test-client/1"),)

    def __init__(self, request: Message) -> None:
        self._messages: list[bytes | None] = [request.SerializeToString(), None]
        self.answer = b""

    async def receive(self, timeout: float | None = None) -> bytes | None:
        return self._messages.pop(0)

    async def send(self, message: bytes) -> None:
        self.answer = message

    def cut(self) -> None: ...


@pytest.fixture
def methods(routes: Routes) -> Mapping[str, RpcHandler]:
    service = inference_service(routes, Clock())
    assert service.name == "openshell.inference.v1.Inference"
    return service.methods


async def asked(handler: RpcHandler, request: Message) -> bytes:
    call = Asked(request)
    await handler(call)
    return call.answer


@pytest.mark.parametrize(
    "names", [("SetClusterInference", "GetClusterInference"), ("SetInferenceRoute", "GetInferenceRoute")]
)
async def test_every_generation_of_clients_sets_and_gets(
    methods: Mapping[str, RpcHandler], registry: Registry, openai: ProviderChange, names: tuple[str, str]
) -> None:
    await registry.create("p", openai, "test")
    wanted = later.SetRouteRequest(provider_name="p", model_id="m", timeout_secs=9, workspace="default")
    was_set = later.SetRouteResponse.FromString(await asked(methods[names[0]], wanted))
    assert (was_set.version, was_set.timeout_secs, was_set.workspace) == (1, 9, "default")
    told = later.GetRouteResponse.FromString(await asked(methods[names[1]], later.GetRouteRequest()))
    assert (told.provider_name, told.model_id, told.route_name) == ("p", "m", "inference.local")
    deleted = await asked(methods["DeleteInferenceRoute"], later.DeleteRouteRequest())
    assert later.DeleteRouteResponse.FromString(deleted).deleted


async def test_f28_a_bundle_tells_when_it_was_made(methods: Mapping[str, RpcHandler]) -> None:
    answer = await asked(methods["GetInferenceBundle"], seed.GetInferenceBundleRequest())
    bundle = seed.GetInferenceBundleResponse.FromString(answer)
    assert (bundle.generated_at_ms, len(bundle.revision), len(bundle.routes)) == (1_700_000_000_500, 16, 0)


async def test_a_refusal_ends_the_call_with_its_status(methods: Mapping[str, RpcHandler]) -> None:
    with pytest.raises(RpcError, match="not configured") as refusal:
        await asked(methods["GetClusterInference"], seed.GetClusterInferenceRequest())
    assert refusal.value.status is Status.NOT_FOUND


async def test_a_failing_store_is_internal_and_its_details_stay_with_us(
    methods: Mapping[str, RpcHandler], store: SqliteStore
) -> None:
    await store.open()
    await store._do(lambda connection: connection.execute("DROP TABLE records"))
    with pytest.raises(RpcError) as refusal:
        await asked(methods["GetInferenceBundle"], seed.GetInferenceBundleRequest())
    assert (refusal.value.status, refusal.value.message) == (Status.INTERNAL, "the store could not be read or written")

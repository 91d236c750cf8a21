from collections.abc import Mapping, Sequence

import pytest
from google.protobuf.message import Message

from kinference.control.registry import ProviderChange, Registry
from kinference.control.routes import Routes
from kinference.control.service import inference_service
from kinference.control.store.sqlite import SqliteStore
from kinference.vocabulary import Role
from kinference.wire.access import Access, Token
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

    def __init__(self, request: Message, token: str) -> None:
        self.metadata: Sequence[tuple[str, str | bytes]] = (
            ("user-agent", "test-client/1"),
            ("authorization", f"Bearer {token}"),
        )
        self.peer_names: Sequence[str] = ()
        self._messages: list[bytes | None] = [request.SerializeToString(), None]
        self.answer = b""

    def tell(self, name: str, value: str) -> None: ...

    async def receive(self, timeout: float | None = None) -> bytes | None:
        return self._messages.pop(0)

    async def send(self, message: bytes) -> None:
        self.answer = message

    async def rest(self) -> None: ...

    def wake(self) -> None: ...

    def cut(self) -> None: ...

    def takes(self, message: bytes) -> bool:
        return False


@pytest.fixture
def methods(routes: Routes) -> Mapping[str, RpcHandler]:
    service = inference_service(routes, Access([]), Clock())
    assert service.name == "openshell.inference.v1.Inference"
    return service.methods


async def asked(handler: RpcHandler, request: Message, token: str = "") -> bytes:
    call = Asked(request, token)
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


async def test_fact28_a_bundle_tells_when_it_was_made(methods: Mapping[str, RpcHandler]) -> None:
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


USERS_CALLS = (
    "SetClusterInference",
    "GetClusterInference",
    "SetInferenceRoute",
    "GetInferenceRoute",
    "DeleteInferenceRoute",
)


@pytest.mark.parametrize("method", [*USERS_CALLS, "GetInferenceBundle"])
async def test_fact37_neither_does_what_is_the_others(routes: Routes, method: str) -> None:
    access = Access([Token("alice", Role.USER, "user-token"), Token("box", Role.SANDBOX, "box-token")])
    handler = inference_service(routes, access, Clock()).methods[method]
    wrong, right = ("box-token", "user-token") if method in USERS_CALLS else ("user-token", "box-token")
    statuses = []
    for token in ("", "unknown", wrong, right):
        try:
            await asked(handler, later.SetRouteRequest(), token)
            statuses.append(Status.OK)
        except RpcError as error:
            statuses.append(error.status)
    assert statuses[:3] == [Status.UNAUTHENTICATED, Status.UNAUTHENTICATED, Status.PERMISSION_DENIED]
    assert statuses[3] in (Status.OK, Status.INVALID_ARGUMENT, Status.NOT_FOUND)


async def test_the_audit_log_names_the_caller(
    routes: Routes, registry: Registry, openai: ProviderChange, caplog: pytest.LogCaptureFixture
) -> None:
    await registry.create("p", openai, "test")
    service = inference_service(routes, Access([Token("alice", Role.USER, "user-token")]), Clock())
    with caplog.at_level("INFO", "kinference.control.audit"):
        wanted = later.SetRouteRequest(provider_name="p", model_id="m")
        await asked(service.methods["SetClusterInference"], wanted, "user-token")
    actors = [vars(record)["actor"] for record in caplog.records if record.message == "route set"]
    assert actors == ["grpc alice test-client/1"]

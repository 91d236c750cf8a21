"""The service `openshell.inference.v1.Inference`, under the method names of every generation of its clients."""

import logging
from collections.abc import Awaitable, Callable

from kinference.control import convert
from kinference.control.errors import StoreFailed
from kinference.control.routes import Routes
from kinference.errors import KinferenceError
from kinference.ports import Clock
from kinference.vocabulary import Role
from kinference.wire.access import Access
from kinference.wire.proto import control_pb2 as pb
from kinference.wire.proto import inference_pb2
from kinference.wire.rpc import Call, RpcError, RpcHandler, RpcService

SERVICE = inference_pb2.DESCRIPTOR.services_by_name["Inference"].full_name
ACTOR_CHARS_MAX = 128

_log = logging.getLogger(__name__)


def inference_service(routes: Routes, access: Access, clock: Clock) -> RpcService:
    """The three methods of the contract, and those that came after it."""
    methods = InferenceMethods(routes, access, clock)
    handlers: dict[str, RpcHandler] = {
        "SetClusterInference": methods.set_route,
        "GetClusterInference": methods.get_route,
        "GetInferenceBundle": methods.get_bundle,
        "SetInferenceRoute": methods.set_route,
        "GetInferenceRoute": methods.get_route,
        "DeleteInferenceRoute": methods.delete_route,
    }
    return RpcService(SERVICE, {name: _with_status(handler) for name, handler in handlers.items()})


class InferenceMethods:
    """Each method reads a request, asks the routes, and writes the answer."""

    def __init__(self, routes: Routes, access: Access, clock: Clock) -> None:
        self._routes, self._access, self._clock = routes, access, clock

    async def set_route(self, call: Call) -> None:
        actor = self._user(call)
        request = convert.decode(pb.SetRouteRequest, await call.receive())
        result = await self._routes.set(convert.route_request(request), actor)
        await call.send(convert.route_set(result, request.workspace))

    async def get_route(self, call: Call) -> None:
        self._user(call)
        request = convert.decode(pb.GetRouteRequest, await call.receive())
        route = await self._routes.get(request.route_name, request.workspace)
        await call.send(convert.route_told(route, request.workspace))

    async def delete_route(self, call: Call) -> None:
        actor = self._user(call)
        request = convert.decode(pb.DeleteRouteRequest, await call.receive())
        deleted = await self._routes.delete(request.route_name, actor, request.workspace)
        await call.send(pb.DeleteRouteResponse(deleted=deleted).SerializeToString())

    async def get_bundle(self, call: Call) -> None:
        self._access.check(call.metadata, Role.SANDBOX)
        convert.decode(inference_pb2.GetInferenceBundleRequest, await call.receive())
        bundle = await self._routes.bundle()
        await call.send(convert.bundle_told(bundle, int(self._clock.wall() * 1000)))

    def _user(self, call: Call) -> str:
        """Who asks, as far as the call tells. Raises Unauthenticated or Denied."""
        name = self._access.check(call.metadata, Role.USER, Role.ADMIN)
        agents = [value for key, value in call.metadata if key == "user-agent" and isinstance(value, str)]
        return f"grpc {name} {agents[0][:ACTOR_CHARS_MAX] if agents else ''}".replace("  ", " ").rstrip()


def _with_status(handler: Callable[[Call], Awaitable[None]]) -> RpcHandler:
    """Translate our failures, once. What is wrong with the store is for our log, not for callers."""

    async def handle(call: Call) -> None:
        try:
            await handler(call)
        except StoreFailed as error:
            _log.error("the store failed a call: %s", error)
            raise RpcError(convert.STATUS[StoreFailed], "the store could not be read or written") from error
        except KinferenceError as error:
            status = convert.STATUS.get(type(error))
            if status is None:
                raise
            raise RpcError(status, str(error)) from error

    return handle

"""The service `openshell.inference.v1.Inference`, under the method names of every generation of its clients."""

import logging
from collections.abc import Awaitable, Callable

from kinference.config.values import DEFAULT_WORKSPACE
from kinference.control import convert
from kinference.control.errors import StoreFailed
from kinference.control.routes import Routes
from kinference.control.scope import scope_of_sandbox
from kinference.errors import KinferenceError
from kinference.ports import Clock
from kinference.vocabulary import Role
from kinference.wire.access import Access, Caller, Denied
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
        caller = self._user(call)
        request = convert.decode(pb.SetRouteRequest, await call.receive())
        _check_member(caller, request.workspace)
        result = await self._routes.set(convert.route_request(request), _actor(call, caller))
        await call.send(convert.route_set(result, request.workspace))

    async def get_route(self, call: Call) -> None:
        caller = self._user(call)
        request = convert.decode(pb.GetRouteRequest, await call.receive())
        _check_member(caller, request.workspace)
        route = await self._routes.get(request.route_name, convert.scope_of(request.workspace))
        await call.send(convert.route_told(route, request.workspace))

    async def delete_route(self, call: Call) -> None:
        caller = self._user(call)
        request = convert.decode(pb.DeleteRouteRequest, await call.receive())
        _check_member(caller, request.workspace)
        scope = convert.scope_of(request.workspace)
        deleted = await self._routes.delete(request.route_name, _actor(call, caller), scope)
        await call.send(pb.DeleteRouteResponse(deleted=deleted).SerializeToString())

    async def get_bundle(self, call: Call) -> None:
        """The routes of the sandbox that asks, as its credential names it."""
        caller = self._access.check(call.metadata, Role.SANDBOX, names=call.peer_names)
        convert.decode(inference_pb2.GetInferenceBundleRequest, await call.receive())
        bundle = await self._routes.bundle(scope_of_sandbox(caller.workspace, caller.name))
        await call.send(convert.bundle_told(bundle, int(self._clock.wall() * 1000)))

    def _user(self, call: Call) -> Caller:
        """Who asks. Raises Unauthenticated or Denied."""
        return self._access.check(call.metadata, Role.USER, Role.ADMIN, names=call.peer_names)


def _check_member(caller: Caller, workspace: str) -> None:
    """Before anything else is looked at: who is no member does not learn which workspaces there are."""
    if caller.workspace and (workspace or DEFAULT_WORKSPACE) != caller.workspace:
        raise Denied(f"this credential is for the workspace {caller.workspace}")


def _actor(call: Call, caller: Caller) -> str:
    """Who asks, as far as the call tells, for the audit log."""
    agents = [value for key, value in call.metadata if key == "user-agent" and isinstance(value, str)]
    return f"grpc {caller.name} {agents[0][:ACTOR_CHARS_MAX] if agents else ''}".replace("  ", " ").rstrip()


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

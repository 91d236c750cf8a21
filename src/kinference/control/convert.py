"""Between the messages of every generation of the interface and our values, and from our failures to gRPC status."""

from collections.abc import Mapping
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from kinference.config.values import DEFAULT_WORKSPACE
from kinference.control.bundle import Bundle, BundledRoute
from kinference.control.catalogue import Route
from kinference.control.errors import Missing, Overtaken, StoreFailed, Unmet
from kinference.control.routes import RouteRequest, RouteSet
from kinference.control.scope import Scope
from kinference.errors import InvalidArgument, KinferenceError
from kinference.wire.access import Denied, Unauthenticated
from kinference.wire.proto import control_pb2 as pb
from kinference.wire.rpc import Status

STATUS: Mapping[type[KinferenceError], Status] = {
    InvalidArgument: Status.INVALID_ARGUMENT,
    Unmet: Status.FAILED_PRECONDITION,
    Missing: Status.NOT_FOUND,
    Overtaken: Status.ABORTED,
    Unauthenticated: Status.UNAUTHENTICATED,
    Denied: Status.PERMISSION_DENIED,
    StoreFailed: Status.INTERNAL,
}
"""Every failure that a call of the interface can end in."""

MessageType = TypeVar("MessageType", bound=Message)


def decode(kind: type[MessageType], message: bytes | None) -> MessageType:
    """A message of the interface; unknown fields are skipped."""
    if message is None:
        raise InvalidArgument("the call ended without a request")
    try:
        return kind.FromString(message)
    except DecodeError as error:
        raise InvalidArgument("the request cannot be decoded") from error


def route_request(request: pb.SetRouteRequest) -> RouteRequest:
    """`verify` has no effect in any generation: what counts is `no_verify`."""
    return RouteRequest(
        route_name=request.route_name,
        provider_name=request.provider_name,
        model_id=request.model_id,
        no_verify=request.no_verify,
        timeout_secs=request.timeout_secs,
        scope=scope_of(request.workspace),
    )


def scope_of(workspace: str) -> Scope:
    """Later clients name a workspace, earlier ones know of none."""
    return Scope(workspace or DEFAULT_WORKSPACE)


def route_set(result: RouteSet, workspace: str) -> bytes:
    """The workspace is echoed to who named one: earlier generations do not know it."""
    route, validated = result.route, result.validated
    endpoints = [pb.ValidatedEndpoint(url=validated.url, protocol=validated.protocol)] if validated else []
    return pb.SetRouteResponse(
        provider_name=route.provider_name,
        model_id=route.model_id,
        version=route.version,
        route_name=route.name,
        validation_performed=validated is not None,
        validated_endpoints=endpoints,
        timeout_secs=route.timeout_secs,
        workspace=workspace,
    ).SerializeToString()


def route_told(route: Route, workspace: str) -> bytes:
    return pb.GetRouteResponse(
        provider_name=route.provider_name,
        model_id=route.model_id,
        version=route.version,
        route_name=route.name,
        timeout_secs=route.timeout_secs,
        workspace=workspace,
    ).SerializeToString()


def bundle_told(bundle: Bundle, generated_at_ms: int) -> bytes:
    routes = [_resolved_route(route) for route in bundle.routes]
    told = pb.GetInferenceBundleResponse(routes=routes, revision=bundle.revision, generated_at_ms=generated_at_ms)
    return told.SerializeToString()


def _resolved_route(route: BundledRoute) -> pb.ResolvedRoute:
    return pb.ResolvedRoute(
        name=route.name,
        base_url=route.base_url,
        protocols=route.protocols,
        api_key=route.api_key,
        model_id=route.model_id,
        provider_type=route.provider_type,
        timeout_secs=route.timeout_secs,
        model_in_path=route.model_in_path,
        request_path_override=route.path_override,
    )

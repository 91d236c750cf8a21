"""Objects of the Kubernetes API, read as from a stranger, and the endpoints that they stand for. Pure."""

from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from typing import Final

import msgspec

from kinference.fleet.discovery.place import Place
from kinference.ids import Address

_ENDED: Final = ("Failed", "Succeeded")
_IPV6: Final = 6
PORTS_MAX: Final = 8
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a reader raises for what is no such object."""
_PORT_MAX: Final = 65535


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _PodStatus(msgspec.Struct, frozen=True):
    phase: str = ""
    pod_ip: str | None = msgspec.field(default=None, name="podIP")
    conditions: tuple[_Condition, ...] | None = None


class Pod(msgspec.Struct, frozen=True):
    """A pod."""

    metadata: _Metadata
    status: _PodStatus = _PodStatus()


class _EndpointConditions(msgspec.Struct, frozen=True):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class _Reference(msgspec.Struct, frozen=True):
    uid: str = ""


class _SliceEndpoint(msgspec.Struct, frozen=True, rename="camel"):
    addresses: tuple[str, ...] | None = None
    conditions: _EndpointConditions = _EndpointConditions()
    target_ref: _Reference | None = None


class EndpointSlice(msgspec.Struct, frozen=True):
    """Some of the endpoints of a Service."""

    metadata: _Metadata
    endpoints: tuple[_SliceEndpoint, ...] | None = None


class _Selector(msgspec.Struct, frozen=True, rename="camel"):
    match_labels: dict[str, str] = {}


class _Port(msgspec.Struct, frozen=True):
    number: int


class _PoolSpec(msgspec.Struct, frozen=True, rename="camel"):
    selector: _Selector
    target_ports: tuple[_Port, ...]


class InferencePool(msgspec.Struct, frozen=True):
    """An InferencePool, v1."""

    spec: _PoolSpec


class _ListMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Listed(msgspec.Struct, frozen=True):
    """One page of a list; what an item is depends on what was asked for."""

    metadata: _ListMetadata = _ListMetadata()
    items: tuple[msgspec.Raw, ...] | None = None


class Happened(msgspec.Struct, frozen=True):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


class Status(msgspec.Struct, frozen=True):
    """What the API says where it fails."""

    code: int = 0


class Known(msgspec.Struct, frozen=True):
    """One object: what it is called, as of which version, and which endpoints it stands for."""

    name: str
    version: str
    places: tuple[Place, ...]


def read_pod(raw: bytes | msgspec.Raw, ports: Sequence[int]) -> Known:
    """A pod takes requests once it is ready and until it is told to end. Raises UNREADABLE."""
    pod = msgspec.json.decode(raw, type=Pod)
    about, status = pod.metadata, pod.status
    is_ready = any(one.type == "Ready" and one.status == "True" for one in status.conditions or ())
    ip = status.pod_ip or ""
    places = () if status.phase in _ENDED else _places(ip, ports, is_ready and not about.deletion_timestamp, about.uid)
    return Known(about.name, about.resource_version, places)


def read_slice(raw: bytes | msgspec.Raw, ports: Sequence[int]) -> Known:
    """What no condition says counts as the API has it: ready, not about to end. Raises UNREADABLE."""
    found = msgspec.json.decode(raw, type=EndpointSlice)
    places: list[Place] = []
    for one in found.endpoints or ():
        is_open = one.conditions.ready is not False and not one.conditions.terminating
        life = one.target_ref.uid if one.target_ref is not None else ""
        places += _places((one.addresses or ("",))[0], ports, is_open, life)  # more of them mean the same one
    return Known(found.metadata.name, found.metadata.resource_version, tuple(places))


def read_pool(raw: bytes) -> tuple[dict[str, str], tuple[int, ...]]:
    """The labels and ports of an InferencePool. Raises UNREADABLE."""
    spec = msgspec.json.decode(raw, type=InferencePool).spec
    ports = tuple(port.number for port in spec.target_ports)
    if not spec.selector.match_labels or not 1 <= len(ports) <= PORTS_MAX or not all(map(_is_port, ports)):
        raise msgspec.ValidationError("no labels, or no ports")
    return spec.selector.match_labels, ports


def of_one_family(places: Iterable[Place]) -> tuple[Place, ...]:
    """Without the IPv6 addresses of those that have one of IPv4 as well, as in the slices of a Service with both: each
    is one engine.
    """
    told = tuple(places)
    known = {(place.life, _port_of(place)) for place in told if not _is_ipv6(place)}
    return tuple(one for one in told if not _is_ipv6(one) or not one.life or (one.life, _port_of(one)) not in known)


def _port_of(place: Place) -> str:
    return place.address.rpartition(":")[2]


def _is_ipv6(place: Place) -> bool:
    return place.address.startswith("[")


def _is_port(number: int) -> bool:
    return 0 < number <= _PORT_MAX


def _places(ip: str, ports: Sequence[int], is_open: bool, life: str) -> tuple[Place, ...]:
    try:
        version = ip_address(ip).version
    except ValueError:  # it has none yet, or is a host name's slice
        return ()
    host = f"[{ip}]" if version == _IPV6 else ip
    return tuple(Place(Address(f"{host}:{port}"), is_open, life, rank) for rank, port in enumerate(ports))

"""Typed ids and units: what a number or a name stands for, so that two of them cannot be mixed up."""

from typing import NamedTuple, NewType, TypeAlias

StreamId = NewType("StreamId", int)
"""A pushed body, before Pick. Random, non-zero, 64 bits: whoever holds it may pick the body."""

ResponseId = NewType("ResponseId", int)
"""A picked request, after Pick. Random, non-zero, 64 bits."""

ReservationId = NewType("ReservationId", int)
"""What the ledger holds in flight for one decision. Internal: never crosses the wire; 0 means none."""

Address = NewType("Address", str)
"""`host:port` of an endpoint, IPv6 hosts in brackets, no scheme."""

Seconds: TypeAlias = float
Milliseconds: TypeAlias = float


class ObjectRef(NamedTuple):
    """A namespaced name, as Kubernetes has it: names a pool or a backend."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

"""Keys of `pools[].discovery`: where the engines of a pool come from that are not listed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from kinference.config.keys import about
from kinference.config.values import Count, Duration, HostPort, Name, Url

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class DnsDiscovery:
    """A name whose records are the engines, such as a headless Service's."""

    name: Name = field(metadata=about("Name to ask for; one without a dot at its end goes by the search list, too."))
    port: Count | None = field(
        default=None,
        metadata=about(
            "Port of the engine at each of its A records, or AAAA where it has none; absent: SRV records tell host "
            "and port."
        ),
    )
    interval: Duration = field(default=Duration(10.0), metadata=about("How often it is asked for, 1s to 1h."))
    server: HostPort | None = field(
        default=None, metadata=about("Address of the DNS server, an IP address and its port; absent: the system's.")
    )


@dataclass(frozen=True, slots=True)
class KubernetesDiscovery:
    """Pods of a cluster, watched: by their labels, as a Service has them, or as an InferencePool does."""

    match_labels: Mapping[str, str] = field(
        default_factory=lambda: _NOTHING,
        metadata=about("Labels that the pods have, 1 to 64: this, service or inference_pool."),
    )
    service: Name | None = field(
        default=None, metadata=about("Service whose EndpointSlices they are in: this, match_labels or inference_pool.")
    )
    inference_pool: Name | None = field(
        default=None,
        metadata=about(
            "InferencePool (inference.networking.k8s.io/v1) whose selector and targetPorts hold: this, match_labels or "
            "service."
        ),
    )
    target_ports: tuple[Count, ...] = field(
        default=(),
        metadata=about("Ports of each pod, 1 to 8, every one an endpoint; an InferencePool brings its own."),
    )
    namespace: Name | None = field(
        default=None, metadata=about("Namespace that they are in; absent: that of this process's own pod.")
    )
    api: Url | None = field(
        default=None,
        metadata=about(
            "The API, where this process is no pod of the cluster: http://HOST:PORT of kubectl proxy. No token goes "
            "there."
        ),
    )


@dataclass(frozen=True, slots=True)
class Discovery:
    """Exactly one way to find the engines of a pool."""

    dns: DnsDiscovery | None = field(default=None, metadata=about("By DNS: this or kubernetes."))
    kubernetes: KubernetesDiscovery | None = field(
        default=None, metadata=about("By the API of Kubernetes: this or dns.")
    )

"""What `pools[].discovery` has to keep to, one small function for each rule, as in `checks`."""

import ipaddress
import re
from collections.abc import Iterator
from typing import Final

from kinference.config.discovery import DnsDiscovery, KubernetesDiscovery
from kinference.config.schema import Config
from kinference.config.values import PORT_MAX
from kinference.errors import ConfigError

INTERVAL_MIN: Final = 1.0
INTERVAL_MAX: Final = 3600.0
TARGET_PORTS_MAX: Final = 8
LABELS_MAX: Final = 64
_ADVICE_PORTS: Final = "list 1 to 8 ports of the pods, each an endpoint: [8000]"
_HOST: Final = re.compile(
    r"(_?[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\.)*_?[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\.?"
)
_OBJECT: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_LABEL: Final = re.compile(
    r"(?=.{1,317}$)([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")


def endpoints_are_listed_or_discovered(config: Config) -> Iterator[ConfigError]:
    for place, pool in enumerate(config.pools):
        path, discovery = f"pools[{place}].discovery", pool.discovery
        if discovery is None:
            continue
        if pool.endpoints:
            yield ConfigError(path, "the pool lists endpoints, too", "keep one of endpoints and discovery")
        if (discovery.dns is None) == (discovery.kubernetes is None):
            yield ConfigError(path, "needs exactly one of dns and kubernetes", "split the pool where both are meant")


def dns_can_be_asked(config: Config) -> Iterator[ConfigError]:
    for place, pool in enumerate(config.pools):
        if pool.discovery is not None and pool.discovery.dns is not None:
            yield from _dns(f"pools[{place}].discovery.dns", pool.discovery.dns)


def _dns(path: str, dns: DnsDiscovery) -> Iterator[ConfigError]:
    if not _HOST.fullmatch(dns.name):
        yield ConfigError(f"{path}.name", "is no host name", "write SERVICE.NAMESPACE.svc, without scheme and port")
    if dns.port is not None and not 0 < dns.port <= PORT_MAX:
        yield ConfigError(f"{path}.port", "is no port", "write the engines' port, 8000 for instance")
    if not INTERVAL_MIN <= dns.interval <= INTERVAL_MAX:
        yield ConfigError(f"{path}.interval", "must be 1s to 1h", "leave it out for 10s")
    if dns.server is not None and (not _is_ip(dns.server.host) or not dns.server.port):
        yield ConfigError(f"{path}.server", "needs an IP address and a port", "write 10.96.0.10:53, or leave it out")


def kubernetes_can_be_watched(config: Config) -> Iterator[ConfigError]:
    for place, pool in enumerate(config.pools):
        if pool.discovery is not None and pool.discovery.kubernetes is not None:
            path, asked = f"pools[{place}].discovery.kubernetes", pool.discovery.kubernetes
            yield from _objects(path, asked)
            yield from _labels(f"{path}.match_labels", asked)
            yield from _target_ports(f"{path}.target_ports", asked)
            if asked.api is not None and asked.api.path:
                yield ConfigError(f"{path}.api", "has a path", "write scheme, host and port alone")


def _objects(path: str, asked: KubernetesDiscovery) -> Iterator[ConfigError]:
    ways = (bool(asked.match_labels), asked.service is not None, asked.inference_pool is not None)
    if sum(ways) != 1:
        fix = "write match_labels: {app: NAME}, or service: NAME, or inference_pool: NAME"
        yield ConfigError(path, "needs exactly one of match_labels, service and inference_pool", fix)
    names = {"service": asked.service, "inference_pool": asked.inference_pool, "namespace": asked.namespace}
    for key, name in names.items():
        if name is not None and not _OBJECT.fullmatch(name):
            fix = "Kubernetes' names are of lower case letters, digits, - and ."
            yield ConfigError(f"{path}.{key}", "is no name of an object", fix)


def _labels(path: str, asked: KubernetesDiscovery) -> Iterator[ConfigError]:
    if len(asked.match_labels) > LABELS_MAX:
        yield ConfigError(path, f"over {LABELS_MAX} labels", "fewer tell the pods apart as well")
    for key, value in asked.match_labels.items():
        if not _LABEL.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
            yield ConfigError(path, f"{key[:64]!r} is no label with a value", "write KEY: VALUE as the pods have them")


def _target_ports(path: str, asked: KubernetesDiscovery) -> Iterator[ConfigError]:
    ports = asked.target_ports
    if asked.inference_pool is not None:
        if ports:
            yield ConfigError(path, "an InferencePool brings its own", "leave the key out")
    elif not 1 <= len(ports) <= TARGET_PORTS_MAX:
        yield ConfigError(path, "none" if not ports else f"over {TARGET_PORTS_MAX}", _ADVICE_PORTS)
    if any(not 0 < port <= PORT_MAX for port in ports) or len(set(ports)) < len(ports):
        yield ConfigError(path, "something is no port, or twice there", _ADVICE_PORTS)


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True

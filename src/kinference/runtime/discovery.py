"""From `pools[].discovery` to the sources that tell."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from kinference.config.discovery import Discovery, DnsDiscovery, KubernetesDiscovery
from kinference.config.schema import Config
from kinference.fleet.discovery.discoveries import Wanted
from kinference.fleet.discovery.dns import DnsQuestion, DnsSource, Resolver
from kinference.fleet.discovery.kubernetes.api import KubernetesApi
from kinference.fleet.discovery.kubernetes.source import (
    Asked,
    KubernetesSource,
    Labelled,
    OfInferencePool,
    OfService,
)
from kinference.fleet.discovery.place import Place
from kinference.fleet.discovery.source import Source, SourceFailed
from kinference.ports import Upstream
from kinference.runtime.cluster import SERVICE_ACCOUNT, OwnCluster, own_cluster
from kinference.runtime.rules import template_of
from kinference.wire.cluster import Cluster
from kinference.wire.http1.upstream import Http1Upstream
from kinference.wire.trust import Trust


@dataclass(frozen=True, slots=True)
class Ways:
    """What sources reach the world by."""

    upstream: Upstream
    """To an API that the configuration names."""
    own: OwnCluster | None
    own_upstream: Upstream
    """To the API of our own cluster, by its authority."""
    rng: Random

    def wanted(self, config: Config) -> Iterable[Wanted]:
        """Every pool of a configuration that is discovered."""
        for pool in config.pools:
            if pool.discovery is not None:
                yield Wanted(template_of(pool), pool.discovery, partial(self._source, pool.discovery))

    def _source(self, discovery: Discovery) -> Source:
        if discovery.dns is not None:
            return self._by_dns(discovery.dns)
        assert discovery.kubernetes is not None, "the configuration's checks let exactly one of them be"
        return self._by_kubernetes(discovery.kubernetes)

    def _by_dns(self, asked: DnsDiscovery) -> Source:
        server = None if asked.server is None else (asked.server.host, asked.server.port)
        return DnsSource(DnsQuestion(asked.name, asked.port, asked.interval), Resolver(server), self.rng)

    def _by_kubernetes(self, asked: KubernetesDiscovery) -> Source:
        namespace = asked.namespace or (self.own.namespace if self.own is not None else "default")
        question = _question(asked, namespace)
        if asked.api is not None:
            return KubernetesSource(KubernetesApi(self.upstream, Cluster(asked.api.origin, None)), question, self.rng)
        if self.own is None:
            return Nowhere()
        return KubernetesSource(KubernetesApi(self.own_upstream, self.own.api), question, self.rng)


@asynccontextmanager
async def ways(
    upstream: Upstream, environ: Mapping[str, str], rng: Random, account: Path = SERVICE_ACCOUNT
) -> AsyncIterator[Ways]:
    """Open as long as anything is discovered by them."""
    own = own_cluster(environ, account)
    async with Http1Upstream(None if own is None else Trust(own.authority)) as own_upstream:
        yield Ways(upstream, own, own_upstream, rng)


class Nowhere:
    """Where there is no cluster to ask."""

    name = "Kubernetes"

    async def sets(self) -> AsyncGenerator[Sequence[Place], None]:
        """Raises SourceFailed."""
        yield self._none()

    def _none(self) -> Sequence[Place]:
        fix = "run it in the cluster, or name a kubectl proxy as discovery.kubernetes.api"
        raise SourceFailed(f"this process is no pod with a service account of a cluster; {fix}")


def _question(asked: KubernetesDiscovery, namespace: str) -> Asked:
    if asked.inference_pool is not None:
        return OfInferencePool(namespace, asked.inference_pool)
    if asked.service is not None:
        return OfService(namespace, asked.service, asked.target_ports)
    return Labelled(namespace, asked.match_labels, asked.target_ports)

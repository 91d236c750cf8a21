"""What the parts of a configuration ask of one another: one small function for each rule.

A check yields problems with their paths; the loader adds the lines. `CHECKS` refuse, `ADVICE` only tells.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from kinference.config.destinations import KvEvents, ModelRoute
from kinference.config.discovery_checks import (
    dns_can_be_asked,
    endpoints_are_listed_or_discovered,
    kubernetes_can_be_watched,
)
from kinference.config.schema import AccessCertificate, AccessToken, Config
from kinference.config.tenants import TenantLimits
from kinference.config.values import DEFAULT_WORKSPACE, PORT_MAX
from kinference.core.policies import make_policy
from kinference.errors import ConfigError
from kinference.ids import ObjectRef
from kinference.shapes.hosts import region_of
from kinference.vocabulary import Api, Role

KV_RANKS_MAX = 64
RECORDINGS_MAX = 100_000

Check = Callable[[Config], Iterator[ConfigError]]


def listeners_differ(config: Config) -> Iterator[ConfigError]:
    listen = config.listen
    named = {"picker": listen.picker, "gateway": listen.gateway, "admin": listen.admin, "control": listen.control}
    taken = [(f"listen.{name}", address) for name, address in named.items() if address.port != 0]
    yield from _repeated(taken, "another listener has this address", "give each its own port")


def limits_are_positive(config: Config) -> Iterator[ConfigError]:
    limits = config.limits
    bounds = {
        "body_max_bytes": limits.body_max_bytes,
        "buffer_max_bytes": limits.buffer_max_bytes,
        "chunk_max_bytes": limits.chunk_max_bytes,
        "push_idle_timeout": limits.push_idle_timeout,
        "body_ttl": limits.body_ttl,
        "ticket_ttl": limits.ticket_ttl,
        "stalled_pull_ttl": limits.stalled_pull_ttl,
        "connections_max": limits.connections_max,
        "connections_per_peer_max": limits.connections_per_peer_max,
        "streams_max": limits.streams_max,
        "header_list_max_bytes": limits.header_list_max_bytes,
        "stream_resets_per_second": limits.stream_resets_per_second,
        "pings_per_second": limits.pings_per_second,
    }
    for name, bound in bounds.items():
        if bound is not None and bound <= 0:
            yield ConfigError(f"limits.{name}", "must be more than 0", "leave the key out for the default")


def patience_is_positive(config: Config) -> Iterator[ConfigError]:
    if config.gateway.first_byte_timeout <= 0:
        yield ConfigError("gateway.first_byte_timeout", "must be more than 0", "leave the key out for the default")


def a_body_fits_the_buffer(config: Config) -> Iterator[ConfigError]:
    if config.limits.body_max_bytes > config.limits.buffer_max_bytes:
        yield ConfigError(
            "limits.body_max_bytes", "larger than buffer_max_bytes", "the buffer holds at least one whole body"
        )


def names_are_unique(config: Config) -> Iterator[ConfigError]:
    pools = [(f"pools[{place}].name", pool.ref) for place, pool in enumerate(config.pools)]
    backends = [(f"backends[{place}].name", backend.ref) for place, backend in enumerate(config.backends)]
    routes = [(f"models[{place}].model", route.model) for place, route in enumerate(config.models)]
    yield from _repeated(pools, "another pool has this name", "rename one, or give it another namespace")
    yield from _repeated(backends, "another backend has this name", "rename one, or give it another namespace")
    yield from _repeated(routes, "another line has this model", "put all targets under one line")


def pools_have_endpoints(config: Config) -> Iterator[ConfigError]:
    for place, pool in enumerate(config.pools):
        path = f"pools[{place}].endpoints"
        if not pool.endpoints and pool.discovery is None:
            yield ConfigError(path, "no endpoint", "list at least one URL, or write discovery")
        elif pool.endpoints and all(endpoint.weight == 0 for endpoint in pool.endpoints):
            yield ConfigError(path, "every weight is 0", "give one endpoint a weight of 1")
        addresses = [(f"{path}[{index}]", endpoint.url.address) for index, endpoint in enumerate(pool.endpoints)]
        yield from _repeated(addresses, "another endpoint of the pool has this address", "list each engine once")


def kv_events_have_ports(config: Config) -> Iterator[ConfigError]:
    for place, pool in enumerate(config.pools):
        told = [(f"pools[{place}].kv_events", pool.kv_events)]
        told += [(f"pools[{place}].endpoints[{at}].kv_events", one.kv_events) for at, one in enumerate(pool.endpoints)]
        for path, events in told:
            if events is not None:
                yield from _kv_ports(path, events)


def _kv_ports(path: str, events: KvEvents) -> Iterator[ConfigError]:
    if not 1 <= events.ranks <= KV_RANKS_MAX:
        yield ConfigError(f"{path}.ranks", f"must be 1 to {KV_RANKS_MAX}", "leave it out for an engine with one rank")
    for name, port in (("port", events.port), ("replay_port", events.replay_port)):
        if port is not None and not 0 < port <= PORT_MAX - max(0, events.ranks - 1):
            yield ConfigError(f"{path}.{name}", "is no port, or leaves none for the other ranks", "vLLM's is 5557")
    if events.port == events.replay_port:
        yield ConfigError(f"{path}.replay_port", "is the port of the events", "the engine has another for replay")


def recordings_are_bounded(config: Config) -> Iterator[ConfigError]:
    if config.routing.record > RECORDINGS_MAX:
        yield ConfigError("routing.record", f"over {RECORDINGS_MAX}", "fetch them from the admin port more often")


def engine_urls_have_no_version(config: Config) -> Iterator[ConfigError]:
    for place, pool in enumerate(config.pools):
        for index, endpoint in enumerate(pool.endpoints):
            if _ends_in_version(endpoint.url.path):
                fix = "leave the version out: requests bring their own /v1"
                yield ConfigError(f"pools[{place}].endpoints[{index}]", "an engine's URL with a version", fix)


def backends_lead_somewhere(config: Config) -> Iterator[ConfigError]:
    for place, backend in enumerate(config.backends):
        path = f"backends[{place}]"
        if [backend.base_url, backend.provider, backend.route].count(None) != 2:  # noqa: PLR2004 - all but one
            yield ConfigError(
                path,
                "needs exactly one of base_url, provider and route",
                "write base_url and api_key, or provider, or route",
            )
        if backend.api_key is not None and backend.base_url is None:
            yield ConfigError(f"{path}.api_key", "goes with base_url only", "write base_url, or take api_key out")


def requests_can_be_signed(config: Config) -> Iterator[ConfigError]:
    for place, backend in enumerate(config.backends):
        path = f"backends[{place}].aws"
        if backend.aws is None:
            continue
        if backend.base_url is None or backend.api_key is not None:
            yield ConfigError(path, "goes with base_url and without api_key", "write base_url, and one of the two")
        elif backend.api is not Api.BEDROCK_CONVERSE:
            yield ConfigError(path, f"signs nothing for {backend.api.value}", "write api: bedrock_converse")
        elif backend.aws.region is None and not region_of(backend.base_url.host):
            yield ConfigError(f"{path}.region", "missing; base_url names none", "write the region to sign for")


def backends_name_models(config: Config) -> Iterator[ConfigError]:
    for place, backend in enumerate(config.backends):
        if not backend.models:
            yield ConfigError(f"backends[{place}].models", "no model", "write CLIENT_NAME: PROVIDER_NAME")
        elif "" in backend.models or "" in backend.models.values():
            yield ConfigError(f"backends[{place}].models", "an empty model name", "write CLIENT_NAME: PROVIDER_NAME")


def targets_exist(config: Config) -> Iterator[ConfigError]:
    pools, backends = {pool.ref for pool in config.pools}, {backend.ref for backend in config.backends}
    for place, route in enumerate(config.models):
        for index, target in enumerate(route.targets):
            path = f"models[{place}].targets[{index}]"
            if (target.pool is None) == (target.backend is None):
                yield ConfigError(path, "needs exactly one of pool and backend", "split it into two targets")
            if target.pool is not None and target.pool not in pools:
                yield _absent(f"{path}.pool", "pool", target.pool, pools)
            if target.backend is not None and target.backend not in backends:
                yield _absent(f"{path}.backend", "backend", target.backend, backends)


def routes_lead_somewhere(config: Config) -> Iterator[ConfigError]:
    for place, route in enumerate(config.models):
        if not route.model:
            yield ConfigError(f"models[{place}].model", "an empty model name", "write a name or a glob")
        if not route.targets:
            yield ConfigError(f"models[{place}].targets", "no target", "list at least one pool or backend")
        for priority in _weightless(route):
            path = f"models[{place}].targets"
            yield ConfigError(path, f"every weight of priority {priority} is 0", "give one target a weight of 1")


def tenants_are_named(config: Config) -> Iterator[ConfigError]:
    for place, policy in enumerate(config.tenants):
        if not policy.tenants:
            yield ConfigError(f"tenants[{place}].tenants", "no tenant", 'list names; "" is the unnamed one, "*" any')


def client_keys_differ(config: Config) -> Iterator[ConfigError]:
    keys = [(f"gateway.keys[{place}].key", each.key.reveal()) for place, each in enumerate(config.gateway.keys)]
    yield from _repeated(keys, "another entry has the same key", "one key stands for one tenant")


def access_tokens_differ(config: Config) -> Iterator[ConfigError]:
    tokens = [(f"access.tokens[{place}].token", each.token.reveal()) for place, each in enumerate(config.access.tokens)]
    yield from _repeated(tokens, "another entry has the same token", "one token stands for one caller")


def workspaces_exist(config: Config) -> Iterator[ConfigError]:
    known = {DEFAULT_WORKSPACE, *config.control.workspaces}
    access = config.access
    entries: dict[str, Sequence[AccessToken | AccessCertificate]] = {
        "tokens": access.tokens,
        "certificates": access.certificates,
    }
    for kind, each in entries.items():
        for place, entry in enumerate(each):
            path = f"access.{kind}[{place}].workspace"
            if entry.workspace is None:
                continue
            if entry.workspace not in known:
                yield ConfigError(path, f"no workspace is called {entry.workspace}", "name it in control.workspaces")
            if entry.role not in (Role.USER, Role.SANDBOX):
                yield ConfigError(path, f"the role {entry.role.value} is of no workspace", "take it out")


def certificates_are_asked_for(config: Config) -> Iterator[ConfigError]:
    if config.access.certificates and not config.listen.is_mutual:
        yield ConfigError("access.certificates", "nobody is asked for a certificate", "set listen.tls.client_ca")


def the_policy_exists(config: Config) -> Iterator[ConfigError]:
    try:
        make_policy(config.routing.policy, config.routing.parameters)
    except ConfigError as error:
        yield error


def versions_are_not_doubled(config: Config) -> Iterator[ConfigError]:
    for place, backend in enumerate(config.backends):
        if backend.base_url is None or not _ends_in_version(backend.base_url.path):
            continue
        if re.match(r"/v\d+(/|$)", backend.path or ""):
            problem = f"names a version as base_url does, whose stands: {backend.base_url.path}{backend.path}"
            yield ConfigError(f"backends[{place}].path", problem, "name it in one of the two")


def keys_travel_encrypted(config: Config) -> Iterator[ConfigError]:
    for place, backend in enumerate(config.backends):
        if backend.api_key and backend.base_url and backend.base_url.scheme == "http":
            yield ConfigError(f"backends[{place}].base_url", "sends the key unencrypted", "write https")


def tokens_travel_encrypted(config: Config) -> Iterator[ConfigError]:
    listen = config.listen
    for name, address in (("picker", listen.picker), ("admin", listen.admin)):
        if config.access.tokens and listen.tls is None and not address.is_loopback:
            yield ConfigError(f"listen.{name}", "tokens come here unencrypted", "set listen.tls")


def tenants_can_do_something(config: Config) -> Iterator[ConfigError]:
    for place, rule in enumerate(config.tenants):
        limits, path = rule.limits or TenantLimits(), f"tenants[{place}]"
        counts = {
            "requests_per_minute": limits.requests_per_minute,
            "tokens_per_minute": limits.tokens_per_minute,
            "concurrent": limits.concurrent,
        }
        for name, count in counts.items():
            if count == 0:
                fix = "leave the key out for no limit; to shut a tenant out write models: []"
                yield ConfigError(f"{path}.limits.{name}", "must be more than 0", fix)
        if limits.usd_per_month is not None and limits.usd_per_month < 0:
            yield ConfigError(f"{path}.limits.usd_per_month", "must not be less than 0", "write 0 for what is free")
        if rule.usd_per_hour is not None and rule.usd_per_hour <= 0:
            yield ConfigError(f"{path}.usd_per_hour", "must be more than 0", "leave the key out to pass over prices")


def prices_are_not_negative(config: Config) -> Iterator[ConfigError]:
    pools = [(f"pools[{place}]", pool.prices) for place, pool in enumerate(config.pools)]
    backends = [(f"backends[{place}]", backend.prices) for place, backend in enumerate(config.backends)]
    for path, prices in (*pools, *backends):
        for index, price in enumerate(prices):
            if min(price.input_usd, price.output_usd, price.cached_input_usd or 0.0) < 0:
                yield ConfigError(f"{path}.prices[{index}]", "less than 0", "write dollars for a million tokens")


CHECKS: tuple[Check, ...] = (
    listeners_differ,
    limits_are_positive,
    patience_is_positive,
    a_body_fits_the_buffer,
    names_are_unique,
    pools_have_endpoints,
    endpoints_are_listed_or_discovered,
    dns_can_be_asked,
    kubernetes_can_be_watched,
    engine_urls_have_no_version,
    kv_events_have_ports,
    recordings_are_bounded,
    backends_lead_somewhere,
    requests_can_be_signed,
    backends_name_models,
    targets_exist,
    routes_lead_somewhere,
    tenants_are_named,
    tenants_can_do_something,
    prices_are_not_negative,
    client_keys_differ,
    access_tokens_differ,
    workspaces_exist,
    certificates_are_asked_for,
    the_policy_exists,
)

ADVICE: tuple[Check, ...] = (versions_are_not_doubled, keys_travel_encrypted, tokens_travel_encrypted)


def run(checks: Iterable[Check], config: Config) -> list[ConfigError]:
    """Everything that the checks have to say."""
    return [problem for check in checks for problem in check(config)]


def _repeated(paths: Iterable[tuple[str, Hashable]], problem: str, fix: str) -> Iterator[ConfigError]:
    seen: set[Hashable] = set()
    for path, value in paths:
        if value in seen:
            yield ConfigError(path, problem, fix)
        seen.add(value)


def _absent(path: str, kind: str, wanted: ObjectRef, known: set[ObjectRef]) -> ConfigError:
    names = ", ".join(str(ref) for ref in sorted(known)[:20])
    return ConfigError(path, f"no {kind} is called {wanted}", f"known: {names}" if names else f"there is no {kind}")


def _weightless(route: ModelRoute) -> Iterator[int]:
    for priority in sorted({target.priority for target in route.targets}):
        if not any(target.weight for target in route.targets if target.priority == priority):
            yield priority


def _ends_in_version(path: str) -> bool:
    return re.search(r"/v\d+$", path) is not None

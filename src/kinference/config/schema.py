"""Every key of the configuration, declared once: the file, the environment, the JSON Schema and the reference page
all derive from these classes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any

from kinference.config.admission import Admission
from kinference.config.destinations import Backend, ModelRoute, Pool
from kinference.config.keys import about
from kinference.config.tenants import TenantPolicy
from kinference.config.values import Count, Duration, HostPort, Name, Secret, Size, StoreUrl, Url
from kinference.core.policy import UnmatchedTenant
from kinference.vocabulary import Loss, QosClass, Role

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Unauthenticated(Enum):
    """What happens to a request that shows no credential."""

    ALLOW = "allow"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificates of every port. The files are read again when they change."""

    cert: str = field(metadata=about("PEM file of our certificate, with the chain up to its authority."))
    key: str = field(metadata=about("PEM file of its key, without a passphrase."))
    client_ca: str | None = field(
        default=None,
        metadata=about("PEM file of the authorities of callers, who need a certificate then, on every port."),
    )


@dataclass(frozen=True, slots=True)
class Listen:
    """Where the planes listen."""

    picker: HostPort = field(
        default=HostPort("127.0.0.1", 50051), metadata=about("gRPC address of the picker; port 0 takes a free one.")
    )
    gateway: HostPort = field(
        default=HostPort("127.0.0.1", 8080), metadata=about("HTTP address of the gateway; port 0 takes a free one.")
    )
    admin: HostPort = field(
        default=HostPort("127.0.0.1", 9090),
        metadata=about("HTTP address of metrics, health and the admin API; port 0 takes a free one."),
    )
    tls: Tls | None = field(default=None, metadata=about("TLS on all of them; absent: none, in clear text."))
    control: HostPort = field(
        default=HostPort("127.0.0.1", 50052),
        metadata=about("gRPC address of the control plane, where no picker runs that it stands beside."),
    )

    names: tuple[str, ...] = field(
        default=(),
        metadata=about(
            "Host names that a proxy on this machine leads to the gateway or the admin port under; where nobody is "
            "asked for a credential, web pages and the admin port's callers may use no others than this machine's own."
        ),
    )

    def is_local(self, address: HostPort) -> bool:
        """Whether only this machine reaches one of them, in clear text: then any name may lead a web page there."""
        return address.is_loopback and self.tls is None

    @property
    def is_mutual(self) -> bool:
        """Whether whoever connects has shown a certificate."""
        return self.tls is not None and self.tls.client_ca is not None


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds memory and waiting."""

    body_max_bytes: Size = field(default=Size(32 * 2**20), metadata=about("Largest request body."))
    buffer_max_bytes: Size = field(default=Size(2**30), metadata=about("Bytes of all buffered bodies together."))
    chunk_max_bytes: Size = field(default=Size(2**20), metadata=about("Largest chunk of a pushed body."))
    push_idle_timeout: Duration = field(
        default=Duration(30.0), metadata=about("Longest gap between two chunks of a pushed body.")
    )
    body_ttl: Duration = field(
        default=Duration(120.0), metadata=about("How long a body waits to be picked, and then to be pulled.")
    )
    ticket_ttl: Duration = field(
        default=Duration(3600.0), metadata=about("How long a dispatched request counts as in flight without a report.")
    )
    stalled_pull_ttl: Duration = field(
        default=Duration(600.0), metadata=about("How long a pull may take nothing before it counts as abandoned.")
    )
    drain_timeout: Duration = field(
        default=Duration(30.0), metadata=about("How long a shutdown waits for what is under way.")
    )
    connections_max: Count = field(default=Count(16_384), metadata=about("Connections of one port at once."))
    connections_per_peer_max: Count = field(
        default=Count(4_096),
        metadata=about("Those of one peer among them: an IPv4 address, or the /64 of an IPv6 address."),
    )
    streams_max: Count | None = field(
        default=None,
        metadata=about(
            "HTTP/2 streams of one connection at once; absent: 16384 at the picker, 1024 at the gateway and the "
            "admin port."
        ),
    )
    header_list_max_bytes: Size | None = field(
        default=None,
        metadata=about(
            "Largest head of a request, in HTTP/2 with 32 bytes a field added; absent: 16KiB at the picker, 64KiB at "
            "the gateway and the admin port."
        ),
    )
    stream_resets_per_second: Count = field(
        default=Count(500),
        metadata=about(
            "HTTP/2 streams that one connection may open and take back, 4 seconds' worth at once; whoever goes on is "
            "disconnected."
        ),
    )
    pings_per_second: Count = field(
        default=Count(100),
        metadata=about(
            "PING, SETTINGS and other HTTP/2 frames that cost their sender nothing, of one connection, 10 seconds' "
            "worth at once; whoever goes on is disconnected."
        ),
    )
    untaken_max_bytes: Size = field(
        default=Size(2**30),
        metadata=about(
            "Bytes of requests on all ports that no handler has taken yet; from a quarter of it on clients are made to "
            "wait, from half of it on a connection with more than an even share has the HTTP/2 stream reset that "
            "brings more. Not kept by `--wire grpcio`."
        ),
    )


@dataclass(frozen=True, slots=True)
class ClientKey:
    """One credential that clients may show, and who they are then."""

    key: Secret = field(metadata=about("The key that clients send."))
    tenant: str = field(metadata=about("Tenant that it stands for."))
    service_class: QosClass = field(
        default=QosClass.INTERACTIVE, metadata=about("Service class of its requests.", name="class")
    )


@dataclass(frozen=True, slots=True)
class Gateway:
    """Who may use the HTTP plane, and how patient it is."""

    keys: tuple[ClientKey, ...] = field(default=(), metadata=about("Credentials of clients."))
    unauthenticated: Unauthenticated | None = field(
        default=None,
        metadata=about('Requests without a credential (tenant ""); absent: allowed on loopback only.'),
    )
    first_byte_timeout: Duration = field(
        default=Duration(600.0), metadata=about("How long a destination may take to begin its answer.")
    )


@dataclass(frozen=True, slots=True)
class Routing:
    """How a destination is chosen."""

    policy: str = field(default="expected_latency", metadata=about("Name of the policy."))
    parameters: Mapping[str, float] = field(
        default_factory=lambda: _NOTHING, metadata=about("Parameters of the policy.")
    )
    seed: int | None = field(default=None, metadata=about("Seed of the tie-breaker; absent: from the system."))
    record: Count = field(
        default=Count(0),
        metadata=about("Decisions kept with all that went into them, to be made again by kinference explain."),
    )
    admission: Admission = field(default=Admission(), metadata=about("What happens while every engine is busy."))


@dataclass(frozen=True, slots=True)
class Verify:
    """How endpoints are tried before a route may lead there."""

    allow_private: bool | None = field(
        default=None,
        metadata=about("Whether private addresses are tried; absent: only while every listener is on loopback."),
    )


@dataclass(frozen=True, slots=True)
class AccessToken:
    """One credential that callers of the picker's and the admin port may show."""

    name: Name = field(metadata=about("Who that is, for the audit log."))
    role: Role = field(
        metadata=about(
            "picker: the Picker service. sandbox: the bundle with its credentials. user: inference routes over gRPC. "
            "metrics: /metrics. admin: all of the admin port, and inference routes over gRPC."
        )
    )
    token: Secret = field(metadata=about("What they send as authorization: Bearer TOKEN."))
    workspace: Name | None = field(default=None, metadata=about("The only workspace that it may use; absent: any."))


@dataclass(frozen=True, slots=True)
class AccessCertificate:
    """Callers that are known by their certificate (`listen.tls.client_ca`)."""

    names: str = field(
        metadata=about("Glob over its URIs (SPIFFE's), host names and common name: spiffe://cluster/ns/agents/*.")
    )
    role: Role = field(metadata=about("What they may do, as with tokens."))
    workspace: Name | None = field(default=None, metadata=about("The only workspace that they may use; absent: any."))


@dataclass(frozen=True, slots=True)
class SandboxTokens:
    """Tokens that a platform signs, one for each of its sandboxes: JSON Web Tokens under Ed25519."""

    public_key: str = field(metadata=about("PEM file of the public key of whoever signs them."))
    audience: str = field(metadata=about("What their aud names: us."))


@dataclass(frozen=True, slots=True)
class Access:
    """Who may use the picker's and the admin port. The gateway's clients have keys of their own."""

    tokens: tuple[AccessToken, ...] = field(
        default=(),
        metadata=about(
            "Credentials of callers, read again when a file changes; several of one role while one is replaced. "
            "Absent: whoever can reach the ports may call. Health checks never need one."
        ),
    )
    certificates: tuple[AccessCertificate, ...] = field(
        default=(), metadata=about("Callers without a token, by their certificate; the first that fits.")
    )
    sandbox_tokens: SandboxTokens | None = field(
        default=None,
        metadata=about("Signed tokens of the role sandbox, which name it in sub or sandbox_id, and its workspace."),
    )


@dataclass(frozen=True, slots=True)
class Control:
    """The control plane: provider records and inference routes."""

    store: StoreUrl | None = field(
        default=None,
        metadata=about(
            "Where the records are: sqlite:///FILE (four slashes for an absolute path) or "
            "postgresql://USER@HOST/DATABASE; absent: a file in the user's state directory."
        ),
    )
    workspaces: tuple[Name, ...] = field(
        default=(), metadata=about("Workspaces beside default: each, a tenant's, has routes of its own.")
    )
    verify: Verify = field(default=Verify(), metadata=about("How endpoints are tried before a route may lead there."))


@dataclass(frozen=True, slots=True)
class Peer:
    """A plane that another process serves; its URL alone may be enough."""

    url: Url = field(
        metadata=about("Where its gRPC service is: http://HOST:PORT or https://HOST:PORT.", shorthand=True)
    )
    token: Secret | None = field(default=None, metadata=about("What it knows us by."))
    ca: str | None = field(
        default=None, metadata=about("PEM file of the authority of its certificate; absent: the system's.")
    )
    cert: str | None = field(default=None, metadata=about("PEM file of our certificate, where it asks for one."))
    key: str | None = field(default=None, metadata=about("PEM file of its key."))


@dataclass(frozen=True, slots=True)
class Planes:
    """Where the planes are that another process serves (`kinference serve --planes`)."""

    picker: Peer | None = field(default=None, metadata=about("The picker that a gateway asks."))
    control: Peer | None = field(
        default=None, metadata=about("The control plane whose bundle a gateway's routes come from.")
    )


@dataclass(frozen=True, slots=True)
class Translation:
    """What happens where the client and the destination speak different APIs."""

    loss: Loss = field(
        default=Loss.WARN,
        metadata=about("What a loss in translation comes to: told in a header, refused, or passed over."),
    )


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration."""

    listen: Listen = field(default=Listen(), metadata=about("Where the planes listen."))
    limits: Limits = field(default=Limits(), metadata=about("What bounds memory and waiting."))
    access: Access = field(default=Access(), metadata=about("Who may use the picker's and the admin port."))
    pools: tuple[Pool, ...] = field(default=(), metadata=about("Pools of engines."))
    backends: tuple[Backend, ...] = field(default=(), metadata=about("Off-cluster providers."))
    models: tuple[ModelRoute, ...] = field(
        default=(), metadata=about("Routing table; a name without a line goes to whoever serves it.")
    )
    tenants: tuple[TenantPolicy, ...] = field(default=(), metadata=about("What tenants may use."))
    unmatched_tenant: UnmatchedTenant = field(
        default=UnmatchedTenant.ALLOW, metadata=about("What happens to a tenant that no rule names.")
    )
    gateway: Gateway = field(default=Gateway(), metadata=about("Who may use the HTTP plane."))
    translation: Translation = field(
        default=Translation(), metadata=about("Between the API of the client and that of the destination.")
    )
    routing: Routing = field(default=Routing(), metadata=about("How a destination is chosen."))
    control: Control = field(default=Control(), metadata=about("Provider records and inference routes."))
    planes: Planes = field(default=Planes(), metadata=about("Where the planes of other processes are."))

    @property
    def allows_unauthenticated(self) -> bool:
        """Whether a request without a credential is served, as the unnamed tenant."""
        if self.gateway.unauthenticated is None:
            return self.listen.gateway.is_loopback
        return self.gateway.unauthenticated is Unauthenticated.ALLOW

    @property
    def verifies_private(self) -> bool:
        """Whether the control plane may try endpoints at private addresses."""
        if self.control.verify.allow_private is not None:
            return self.control.verify.allow_private
        return all(address.is_loopback for address in (self.listen.picker, self.listen.gateway, self.listen.admin))

"""Keys of `pools`, `backends` and `models`: where requests may go, and by which name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from kinference.config.discovery import Discovery
from kinference.config.keys import about
from kinference.config.values import Count, HttpPath, Name, Secret, Url
from kinference.ids import ObjectRef
from kinference.vocabulary import Api, Engine, Need

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class KvEvents:
    """Where engines publish what they do to their prefix caches (ZMQ, as vLLM and SGLang do)."""

    port: Count = field(metadata=about("Port of the events at the endpoint's host; each further rank has the next."))
    replay_port: Count | None = field(
        default=None, metadata=about("Port that lost events are asked for at; absent: a gap stays one.")
    )
    ranks: Count = field(default=Count(1), metadata=about("Data-parallel engines behind one endpoint, 1 to 64."))
    topic: str = field(default="", metadata=about("Topic that the events have or begin with; empty: any."))
    tokenize: bool = field(
        default=True,
        metadata=about(
            "Have each new prompt put into tokens by the engine (its /tokenize), aside, so that events are matched to "
            "prompts; without, they only tell of restarts and cleared caches."
        ),
    )


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One engine of a pool; its URL alone is enough."""

    url: Url = field(metadata=about("Where the engine listens, without /v1: http://HOST:PORT.", shorthand=True))
    labels: Mapping[str, str] = field(
        default_factory=lambda: _NOTHING, metadata=about("Labels for filters and reports.")
    )
    weight: Count = field(default=Count(1), metadata=about("Share of the traffic among near-equals; 0 takes none."))
    kv_events: KvEvents | None = field(default=None, metadata=about("Where this one publishes, if not as its pool."))


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """What a model costs, in US dollars for a million tokens."""

    model: str = field(metadata=about("Model as the destination names it: exact, or a glob; the first line counts."))
    input_usd: float = field(metadata=about("A million tokens of prompts."))
    output_usd: float = field(metadata=about("A million tokens of answers."))
    cached_input_usd: float | None = field(
        default=None, metadata=about("A million tokens of prompts that were cached; absent: as any others.")
    )


@dataclass(frozen=True, slots=True)
class Lacks:
    """What some models cannot do. What is not said here counts as possible."""

    needs: tuple[Need, ...] = field(metadata=about("What they lack."))
    model: str = field(default="*", metadata=about("Model as the destination names it: exact, or a glob."))


@dataclass(frozen=True, slots=True)
class Pool:
    """Engines that serve the same models."""

    name: Name = field(metadata=about("Name of the pool."))
    endpoints: tuple[Endpoint, ...] = field(
        default=(), metadata=about("Its engines: URLs, or objects with url, labels and weight; this or discovery.")
    )
    namespace: Name = field(default=Name("default"), metadata=about("Namespace of the name."))
    models: tuple[str, ...] | None = field(
        default=None, metadata=about("Models served; absent: discovered from each engine's /v1/models.")
    )
    engine: Engine = field(default=Engine.AUTO, metadata=about("What the engines are; auto finds out."))
    prices: tuple[ModelPrice, ...] = field(
        default=(), metadata=about("What its models cost; those without a line cost nothing.")
    )
    lacks: tuple[Lacks, ...] = field(
        default=(), metadata=about("What its models cannot do: requests that need it go elsewhere.")
    )
    context_tokens: Count | None = field(
        default=None, metadata=about("Tokens of a prompt and its answer; absent: what each engine says.")
    )
    kv_events: KvEvents | None = field(
        default=None,
        metadata=about("Where each publishes its KV events; absent: what was sent there counts as cached."),
    )
    discovery: Discovery | None = field(
        default=None, metadata=about("Where its engines come from, where they come and go; this or endpoints.")
    )

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef(self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class AwsCredentials:
    """What signs requests to Amazon Bedrock."""

    access_key_id: Secret = field(metadata=about("Id of the access key."))
    secret_access_key: Secret = field(metadata=about("The access key itself, which is never sent."))
    session_token: Secret | None = field(
        default=None, metadata=about("Token of temporary credentials; absent: they are for good.")
    )
    region: Name | None = field(default=None, metadata=about("Region to sign for; absent: what base_url says."))


@dataclass(frozen=True, slots=True)
class Backend:
    """One off-cluster provider. Where it is and its credential stay with the gateway."""

    name: Name = field(metadata=about("Name of the backend."))
    api: Api = field(metadata=about("API that it speaks."))
    models: Mapping[str, str] = field(metadata=about("Models served: client's name to the provider's name."))
    namespace: Name = field(default=Name("default"), metadata=about("Namespace of the name."))
    path: HttpPath | None = field(
        default=None,
        metadata=about(
            "Path under base_url, {model} in it the provider's name; absent: the API's own or the client's."
        ),
    )
    base_url: Url | None = field(default=None, metadata=about("URL of the provider: this, provider or route."))
    api_key: Secret | None = field(default=None, metadata=about("Its credential; goes with base_url."))
    aws: AwsCredentials | None = field(
        default=None, metadata=about("Credentials that sign requests in place of an api_key; goes with base_url.")
    )
    provider: Name | None = field(
        default=None, metadata=about("Name of a provider record of the control plane: this, route or base_url.")
    )
    route: Name | None = field(
        default=None,
        metadata=about("Name of an inference route whose place and credential it follows: this, provider or base_url."),
    )
    prices: tuple[ModelPrice, ...] = field(
        default=(),
        metadata=about("What its models cost; those without a line: what the provider is known to charge."),
    )
    lacks: tuple[Lacks, ...] = field(
        default=(), metadata=about("What its models cannot do: requests that need it go elsewhere.")
    )
    context_tokens: Count | None = field(
        default=None, metadata=about("Tokens of a prompt and its answer; absent: not known, all fit.")
    )

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef(self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class Target:
    """One place where a model name may go: a pool or a backend."""

    pool: ObjectRef | None = field(default=None, metadata=about("Pool, as NAME or NAMESPACE/NAME: this or backend."))
    backend: ObjectRef | None = field(default=None, metadata=about("Backend, as NAME or NAMESPACE/NAME: this or pool."))
    model: str = field(default="", metadata=about("Model to ask for there; empty: the client's."))
    weight: Count = field(default=Count(1), metadata=about("Share among the targets of one priority; 0 takes none."))
    priority: Count = field(
        default=Count(0), metadata=about("Lower goes first; higher is for when no lower can serve.")
    )


@dataclass(frozen=True, slots=True)
class ModelRoute:
    """A line of the routing table."""

    model: str = field(metadata=about("Model as clients name it: exact, or a glob."))
    targets: tuple[Target, ...] = field(metadata=about("Where it may go."))

"""The cluster that this process is a pod of."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kinference.config.values import bracketed
from kinference.wire.cluster import Cluster

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class OwnCluster:
    """Its API as a pod reaches it, and what the pod was given for that."""

    api: Cluster
    authority: Path
    namespace: str


def own_cluster(environ: Mapping[str, str], account: Path = SERVICE_ACCOUNT) -> OwnCluster | None:
    """None outside of one.

    Kubernetes sets the variables, and mounts the service account's files (kubernetes.io, "Access the API from a pod").
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT", "443")
    authority, namespace = account / "ca.crt", account / "namespace"
    if not host or not authority.exists():
        return None
    api = Cluster(f"https://{bracketed(host)}:{port}", account / "token")
    return OwnCluster(api, authority, namespace.read_text("ascii").strip() if namespace.exists() else "default")

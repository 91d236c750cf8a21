import base64
from pathlib import Path

import pytest

from kinference.control.credentials import Credentials
from kinference.control.errors import StoreFailed, Unmet
from kinference.control.kubernetes_secrets import KubernetesSecrets
from kinference.control.providers import place_of
from kinference.control.store.keys import KeySource
from kinference.control.store.sealing import Sealer
from kinference.wire.cluster import Cluster
from tests.unit.control.fakes import Answer, Outside

PLACE = place_of("p", "KEY")


def test_a_secret_is_sealed_for_its_provider_and_key(credentials: Credentials) -> None:
    sealed = credentials.seal("p", {"KEY": "sk-1"})["KEY"]
    assert credentials.reveal(sealed, PLACE) == "sk-1"
    with pytest.raises(StoreFailed):
        credentials.reveal(sealed, place_of("q", "KEY"))


def test_a_reference_is_read_when_it_is_needed(
    credentials: Credentials, environ: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(Unmet, match="provider p credential KEY: LATER is not set"):
        credentials.reveal("${LATER}", PLACE)
    environ["LATER"] = "sk-2"
    assert credentials.reveal("${LATER}", PLACE) == "sk-2"
    (tmp_path / "key").write_text("sk-3\n")
    assert credentials.reveal(f"file:{tmp_path}/key", PLACE) == "sk-3"


def test_rewrapping_leaves_references_alone(credentials: Credentials) -> None:
    assert credentials.rewrap("${LATER}") == "${LATER}"
    sealed = credentials.seal("p", {"KEY": "sk-1"})["KEY"]
    rewrapped = credentials.rewrap(sealed)
    assert rewrapped != sealed
    assert credentials.reveal(rewrapped, PLACE) == "sk-1"


async def test_what_is_in_a_cluster_is_fetched_before_it_is_needed(environ: dict[str, str], tmp_path: Path) -> None:
    data = base64.b64encode(b"sk-4").decode()
    outside = Outside([Answer(200, f'{{"data": {{"KEY": "{data}"}}}}'.encode())])
    (tmp_path / "token").write_text("t")
    cluster = KubernetesSecrets(outside, Cluster("https://10.0.0.1", tmp_path / "token"), lambda: 0.0)
    credentials = Credentials(Sealer(KeySource(environ, tmp_path / "secret.key").load), environ, cluster)
    environ["NAME"] = "sk-5"
    reveal = await credentials.revealer(["k8s:a/b/KEY", "k8s:a/b/NONE", "${NAME}"])
    assert (reveal("k8s:a/b/KEY", PLACE), reveal("${NAME}", PLACE)) == ("sk-4", "sk-5")
    with pytest.raises(Unmet, match="provider p credential KEY: k8s:a/b/NONE: the Secret has no such key"):
        reveal("k8s:a/b/NONE", PLACE)


async def test_outside_of_a_cluster_there_is_none_to_look_in(credentials: Credentials) -> None:
    reveal = await credentials.revealer(["k8s:a/b/KEY"])
    with pytest.raises(Unmet, match="this process is in none"):
        reveal("k8s:a/b/KEY", PLACE)

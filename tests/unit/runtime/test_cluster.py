from pathlib import Path

import pytest

from kinference.runtime.cluster import own_cluster
from kinference.wire.cluster import Cluster

IN_A_POD = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}


@pytest.fixture
def account(tmp_path: Path) -> Path:
    for name, text in {"ca.crt": "PEM", "token": "t", "namespace": "models\n"}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_pod_knows_its_api_and_its_namespace(account: Path) -> None:
    own = own_cluster(IN_A_POD, account)
    assert own is not None
    assert (own.api, own.namespace) == (Cluster("https://[fd00::1]:6443", account / "token"), "models")
    assert own.authority == account / "ca.crt"


def test_outside_of_a_cluster_there_is_none(account: Path, tmp_path: Path) -> None:
    assert own_cluster({}, account) is None
    assert own_cluster(IN_A_POD, tmp_path / "absent") is None

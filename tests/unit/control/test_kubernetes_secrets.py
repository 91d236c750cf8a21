"""Against an API as Kubernetes documents it; a real cluster cannot run here."""

import base64
import json
from pathlib import Path

import pytest

from kinference.control.errors import Unmet
from kinference.control.kubernetes_secrets import FRESH_FOR, KubernetesSecrets
from kinference.errors import KinferenceError, UpstreamUnreachable
from kinference.wire.cluster import Cluster
from tests.unit.control.fakes import Answer, Outside

REFERENCE = "k8s:inference/openai/OPENAI_API_KEY"


def secret(value: bytes) -> Answer:
    body = {"kind": "Secret", "data": {"OPENAI_API_KEY": base64.b64encode(value).decode()}}
    return Answer(200, json.dumps(body).encode())


class Time:
    def __init__(self) -> None:
        self.now = 100.0


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def api() -> Outside:
    return Outside([secret(b"sk-1\n")])


@pytest.fixture
def secrets(api: Outside, time: Time, tmp_path: Path) -> KubernetesSecrets:
    token = tmp_path / "token"
    token.write_text("account-token\n")
    return KubernetesSecrets(api, Cluster("https://10.0.0.1:443", token), lambda: time.now)


async def test_a_secret_is_asked_for_with_the_service_accounts_token(secrets: KubernetesSecrets, api: Outside) -> None:
    assert await secrets.read(REFERENCE) == "sk-1"
    (request,) = api.asked
    assert (request.method, request.target) == ("GET", "/api/v1/namespaces/inference/secrets/openai")
    assert (b"authorization", b"Bearer account-token") in request.headers


async def test_a_rotated_secret_is_seen_within_seconds(secrets: KubernetesSecrets, api: Outside, time: Time) -> None:
    await secrets.read(REFERENCE)
    api.answers = [secret(b"sk-2")]
    assert await secrets.read(REFERENCE) == "sk-1"
    time.now += FRESH_FOR
    assert await secrets.read(REFERENCE) == "sk-2"
    assert len(api.asked) == 2


@pytest.mark.parametrize(
    "away", [UpstreamUnreachable("refused"), Answer(503, b""), Answer(200, b"not json"), Answer(200, b"x" * 3_000_000)]
)
async def test_the_last_good_stays_in_use_while_the_api_is_away(
    secrets: KubernetesSecrets, api: Outside, time: Time, away: Answer | KinferenceError
) -> None:
    good, api.answers = api.answers, [away]
    with pytest.raises(Unmet, match="Secret inference/openai cannot be read"):
        await secrets.read(REFERENCE)
    api.answers = good
    assert await secrets.read(REFERENCE) == "sk-1"
    api.answers, time.now = [away], time.now + 60
    assert await secrets.read(REFERENCE) == "sk-1"


@pytest.mark.parametrize(("status", "why"), [(404, "there is none"), (403, "bind it a role"), (401, "bind it a role")])
async def test_a_secret_that_is_gone_or_not_ours_is_not_used_any_longer(
    secrets: KubernetesSecrets, api: Outside, time: Time, status: int, why: str
) -> None:
    await secrets.read(REFERENCE)
    api.answers, time.now = [Answer(status, b"{}")], time.now + 60
    with pytest.raises(Unmet, match=why):
        await secrets.read(REFERENCE)


@pytest.mark.parametrize(
    "reference",
    ["k8s:inference/openai", "k8s:a/../b", "k8s:a/b/c/d", "k8s:A/b/c", "k8s:inference/openai/OTHER_KEY", "k8s:a/b?x/c"],
)
async def test_a_reference_that_leads_nowhere_says_so(secrets: KubernetesSecrets, reference: str) -> None:
    with pytest.raises(Unmet, match=r"no reference|no such key"):
        await secrets.read(reference)


async def test_a_key_that_holds_no_text_is_no_credential(secrets: KubernetesSecrets, api: Outside) -> None:
    api.answers = [secret(b"\xff\xfe")]
    with pytest.raises(Unmet, match="holds no text"):
        await secrets.read(REFERENCE)


async def test_without_a_service_account_nothing_is_asked(api: Outside, tmp_path: Path) -> None:
    secrets = KubernetesSecrets(api, Cluster("https://10.0.0.1:443", tmp_path / "none"), lambda: 0.0)
    with pytest.raises(Unmet, match="no token of a service account"):
        await secrets.read(REFERENCE)
    assert api.asked == []

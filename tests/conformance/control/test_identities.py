"""Who asks decides what is seen: workspaces, signed tokens of sandboxes, certificates."""

import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import grpc
import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kinference.config.schema import Access, AccessCertificate, AccessToken, Config, SandboxTokens, Tls
from kinference.config.values import Name, Secret
from kinference.runtime.service import Ports, running
from kinference.vocabulary import Role
from tests.conformance.control.client import Client
from tests.conformance.control.conftest import Admin, Provider
from tests.conformance.control.test_guards import status_of
from tests.unit.wire.certificates import Pair, self_signed
from tests.unit.wire.signing import US, public_pem, signed

TEAM = Name("team-a")
KEY = Ed25519PrivateKey.generate()
DENIED, NOT_FOUND = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.NOT_FOUND


def token(name: str, role: Role, workspace: Name | None = None) -> AccessToken:
    return AccessToken(Name(name), role, Secret(f"${{{name}}}", f"{name}-token"), workspace)


@pytest.fixture
def config(config: Config, tmp_path: Path) -> Config:
    (tmp_path / "platform.pem").write_text(public_pem(KEY))
    tokens = (
        token("alice", Role.USER, TEAM),
        token("root", Role.ADMIN),
        token("box-1", Role.SANDBOX, TEAM),
        token("box-2", Role.SANDBOX, TEAM),
        token("stranger", Role.SANDBOX),
    )
    access = Access(tokens, sandbox_tokens=SandboxTokens(str(tmp_path / "platform.pem"), US))
    return replace(config, access=access, control=replace(config.control, workspaces=(TEAM,)))


@pytest.fixture
async def as_(ports: Ports) -> AsyncIterator[Callable[[str], Client]]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{ports.picker}") as channel:
        yield lambda secret: Client(channel, later=True, token=secret)


@pytest.fixture
def admin(ports: Ports, provider: Provider) -> Admin:
    return Admin(f"http://127.0.0.1:{ports.admin}", provider, "root-token")


async def models(client: Client) -> dict[str, str]:
    return {route.name: route.model_id for route in (await client.bundle()).routes}


async def test_fact38_each_workspace_has_its_own_routes(as_: Callable[[str], Client], admin: Admin) -> None:
    await admin.create()
    alice, root = as_("alice-token"), as_("root-token")
    assert (await alice.set(model="for-team", workspace="team-a", no_verify=True)).workspace == "team-a"
    assert await models(as_("box-1-token")) == {"inference.local": "for-team"}
    assert await models(as_("stranger-token")) == {}
    await root.set(model="for-all", no_verify=True)
    assert await models(as_("stranger-token")) == {"inference.local": "for-all"}
    assert await models(as_("box-2-token")) == {"inference.local": "for-team"}
    assert (await alice.get(workspace="team-a")).model_id == "for-team"
    assert await alice.delete(workspace="team-a")
    assert await models(as_("box-1-token")) == {}


async def test_fact38_who_is_no_member_does_not_learn_which_workspaces_there_are(
    as_: Callable[[str], Client], admin: Admin
) -> None:
    await admin.create()
    alice = as_("alice-token")
    for workspace in ("", "default", "no-such", "team-b"):
        answers = [
            await status_of(call)
            for call in (
                alice.set(workspace=workspace),
                alice.get(workspace=workspace),
                alice.delete(workspace=workspace),
            )
        ]
        assert {code for code, _ in answers} == {DENIED}
        assert len({details for _, details in answers}) == 1
    assert (await status_of(as_("root-token").get(workspace="no-such")))[0] is NOT_FOUND


async def test_a_sandbox_may_have_a_route_of_its_own(as_: Callable[[str], Client], admin: Admin) -> None:
    await admin.create()
    await as_("alice-token").set(model="for-team", workspace="team-a", no_verify=True)
    own = {"provider": "p", "model": "for-one", "no_verify": True}
    path = "/api/v1/routes/inference.local?workspace=team-a&sandbox="
    assert (await admin.send("PUT", f"{path}box-1", own))[0] == 200
    assert (await admin.send("PUT", f"{path}7f3a", {**own, "model": "for-signed"}))[0] == 200
    assert await models(as_("box-1-token")) == {"inference.local": "for-one"}
    assert await models(as_("box-2-token")) == {"inference.local": "for-team"}
    platform = signed(KEY, sub="spiffe://openshell/sandbox/7f3a", workspace="team-a", exp=0)
    assert await models(as_(platform)) == {"inference.local": "for-signed"}
    assert (await status_of(as_(platform).set(workspace="team-a")))[0] is DENIED
    forged = signed(Ed25519PrivateKey.generate(), exp=0)
    assert (await status_of(as_(forged).bundle()))[0] is grpc.StatusCode.UNAUTHENTICATED


def channel_as(pair: Pair, authority: Pair, port: int) -> grpc.aio.Channel:
    parts = (authority.certificate.read_bytes(), pair.key.read_bytes(), pair.certificate.read_bytes())
    return grpc.aio.secure_channel(f"127.0.0.1:{port}", grpc.ssl_channel_credentials(*parts))


async def test_fact37_a_certificate_says_who_asks(config: Config, tmp_path: Path) -> None:
    ours, box, alice = (self_signed(tmp_path, name) for name in ("server", "box-9", "alice"))
    callers = tmp_path / "callers.pem"
    callers.write_bytes(box.certificate.read_bytes() + alice.certificate.read_bytes())
    rules = (AccessCertificate("box-*", Role.SANDBOX), AccessCertificate("alice", Role.USER))
    mutual = replace(
        config,
        access=Access(certificates=rules),
        listen=replace(config.listen, tls=Tls(str(ours.certificate), str(ours.key), str(callers))),
    )
    async with running(mutual) as service:
        port = service.ports.picker
        async with channel_as(box, ours, port) as as_box, channel_as(alice, ours, port) as as_alice:
            assert (await Client(as_box).bundle()).routes == []
            assert (await status_of(Client(as_box).get()))[0] is DENIED
            assert (await status_of(Client(as_alice).get()))[0] is NOT_FOUND
            assert (await status_of(Client(as_alice).bundle()))[0] is DENIED


@pytest.mark.parametrize("http2", [False, True])
async def test_a_certificate_opens_the_admin_port_as_far_as_its_role_goes(
    config: Config, tmp_path: Path, http2: bool
) -> None:
    ours, ops, prometheus = (self_signed(tmp_path, name) for name in ("server", "ops", "prometheus"))
    callers = tmp_path / "callers.pem"
    callers.write_bytes(ops.certificate.read_bytes() + prometheus.certificate.read_bytes())
    rules = (AccessCertificate("ops", Role.ADMIN), AccessCertificate("prometheus", Role.METRICS))
    mutual = replace(
        config,
        access=Access(certificates=rules),
        listen=replace(config.listen, tls=Tls(str(ours.certificate), str(ours.key), str(callers))),
    )
    async with running(mutual) as service:
        url = f"https://127.0.0.1:{service.ports.admin}"
        for caller, routes in ((ops, 200), (prometheus, 403)):
            context = ssl.create_default_context(cafile=str(ours.certificate))
            context.load_cert_chain(caller.certificate, caller.key)
            async with httpx2.AsyncClient(base_url=url, verify=context, http2=http2) as http:
                assert (await http.get("/metrics")).status_code == 200
                assert (await http.get("/api/v1/routes")).status_code == routes

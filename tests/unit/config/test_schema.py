"""The tree's own rules: defaults as published, and who may come in without a credential."""

from dataclasses import FrozenInstanceError

import pytest

from kinference.config.schema import Config, Control, Gateway, Limits, Listen, Unauthenticated, Verify
from kinference.config.values import HostPort
from kinference.vocabulary import Loss

ANYWHERE = Listen(gateway=HostPort("0.0.0.0", 8080))


def test_the_defaults_are_those_that_the_reference_promises() -> None:
    config = Config()
    assert [str(config.listen.picker), str(config.listen.gateway), str(config.listen.admin)] == [
        "127.0.0.1:50051", "127.0.0.1:8080", "127.0.0.1:9090",
    ]  # fmt: skip
    assert config.limits == Limits(32 * 2**20, 2**30, 2**20, 30.0, 120.0, 3600.0, 600.0, 30.0)  # type: ignore[arg-type]
    assert config.routing.policy == "expected_latency"


@pytest.mark.parametrize(
    ("config", "allowed"),
    [
        (Config(), True),
        (Config(listen=ANYWHERE), False),
        (Config(listen=ANYWHERE, gateway=Gateway(unauthenticated=Unauthenticated.ALLOW)), True),
        (Config(gateway=Gateway(unauthenticated=Unauthenticated.REJECT)), False),
    ],
)
def test_requests_without_a_credential_are_served_on_loopback_unless_said_otherwise(
    config: Config, allowed: bool
) -> None:
    assert config.allows_unauthenticated is allowed


@pytest.mark.parametrize(
    ("config", "allowed"),
    [
        (Config(), True),
        (Config(listen=ANYWHERE), False),
        (Config(listen=ANYWHERE, control=Control(verify=Verify(allow_private=True))), True),
        (Config(control=Control(verify=Verify(allow_private=False))), False),
    ],
)
def test_private_endpoints_are_tried_on_loopback_unless_said_otherwise(config: Config, allowed: bool) -> None:
    assert config.verifies_private is allowed


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Config().limits = Limits()  # type: ignore[misc]


def test_losses_in_translation_are_told_unless_said_otherwise() -> None:
    assert Config().translation.loss is Loss.WARN

"""What the tree says of itself."""

from collections.abc import Mapping

import pytest

from kinference.config.destinations import Backend, Endpoint
from kinference.config.keys import is_choice, item_of, keys_of, settings, spellings, value_of
from kinference.config.schema import ClientKey, Config, Limits, Unauthenticated
from kinference.config.values import HostPort, HttpPath, Secret, Size, Url
from kinference.vocabulary import Api, QosClass


def test_the_keys_come_in_the_order_of_declaration() -> None:
    assert list(keys_of(Config)) == [
        "listen", "limits", "access", "pools", "backends", "models", "tenants", "unmatched_tenant", "gateway", "translation",
        "routing", "control", "planes",
    ]  # fmt: skip


def test_an_optional_key_has_the_type_of_its_value() -> None:
    assert keys_of(Backend)["path"].kind is HttpPath
    assert keys_of(Backend)["path"].default is None
    assert not keys_of(Backend)["path"].is_required


def test_a_key_without_a_default_is_required() -> None:
    assert keys_of(Endpoint)["url"].is_required
    assert keys_of(Limits)["body_ttl"].default == 120.0


def test_a_key_may_be_called_by_a_word_that_python_keeps_for_itself() -> None:
    assert keys_of(ClientKey)["class"].attribute == "service_class"


def test_every_key_has_help_that_is_a_sentence() -> None:
    for cls in (Config, Limits, Backend, Endpoint, ClientKey):
        for key in keys_of(cls).values():
            assert key.help.endswith("."), key.name


def test_lists_and_mappings_say_what_they_hold() -> None:
    assert item_of(tuple[str, ...]) is str
    assert value_of(Mapping[str, float]) is float
    assert item_of(str) is None
    assert value_of(tuple[str, ...]) is None


@pytest.mark.parametrize(
    ("choice", "texts"),
    [
        (Unauthenticated, ["allow", "reject"]),
        (QosClass, ["interactive", "batch", "deferrable"]),
        (Api, [api.value for api in Api]),
    ],
)
def test_a_choice_is_spelled_in_lower_case(choice: type[Unauthenticated | QosClass | Api], texts: list[str]) -> None:
    assert is_choice(choice)
    assert list(spellings(choice)) == texts


def test_the_settings_are_the_single_values_of_the_top_and_of_sections_however_deep() -> None:
    paths = [setting.path for setting in settings(Config, {HostPort, Secret, Size, Url, str})]
    assert "listen.picker" in paths
    assert "limits.body_max_bytes" in paths
    assert "unmatched_tenant" in paths
    assert "listen.tls.client_ca" in paths
    assert not any(path.startswith("pools") for path in paths)

from dataclasses import replace

import pytest

from kinference.control.bundle import Bundle, bundled
from kinference.control.provider_types import Auth
from kinference.control.providers import Resolved

RESOLVED = Resolved("https://h/v1", ("a", "b"), "sk-1", "m", "openai", Auth.BEARER)
ROUTE = bundled("inference.local", RESOLVED, 30)


def test_fact27_the_revision_is_the_same_for_the_same_routes() -> None:
    revision = Bundle((ROUTE,)).revision
    assert revision == Bundle((bundled("inference.local", RESOLVED, 30),)).revision == "4263d9d76c4b95ad"
    assert len(Bundle(()).revision) == 16


@pytest.mark.parametrize(
    "change",
    [
        {"api_key": "sk-2"},
        {"base_url": "https://other"},
        {"model_id": "n"},
        {"timeout_secs": 31},
        {"protocols": ("b", "a")},
        {"model_in_path": True},
        {"path_override": ""},
        {"name": "sandbox-system"},
    ],
)
def test_fact27_the_revision_changes_with_all_that_a_consumer_sees(change: dict[str, object]) -> None:
    changed = replace(ROUTE, **change)  # type: ignore[arg-type] # the table names fields and gives their types
    assert Bundle((changed,)).revision != Bundle((ROUTE,)).revision


def test_the_order_counts() -> None:
    other = replace(ROUTE, name="sandbox-system")
    assert Bundle((ROUTE, other)).revision != Bundle((other, ROUTE)).revision


def test_no_bundle_prints_a_secret() -> None:
    assert "sk-1" not in repr(Bundle((ROUTE,)))

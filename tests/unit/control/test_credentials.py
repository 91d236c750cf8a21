from pathlib import Path

import pytest

from kinference.control.credentials import Credentials
from kinference.control.errors import StoreFailed, Unmet
from kinference.control.providers import place_of

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
